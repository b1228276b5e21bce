package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// webhookMains has a main program for each language. Each program reads a request as JSON and
// prints true if the function "genuine" from docs/webhooks.md accepts it.
var webhookMains = map[string]string{
	"go": `package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

func main() {
	var in struct {
		Secret, Body string
		Headers      map[string]string
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		panic(err)
	}
	header := http.Header{}
	for name, value := range in.Headers {
		header.Set(name, value)
	}
	fmt.Println(genuine(in.Secret, header, []byte(in.Body)))
}
`,
	"js": `import { readFileSync } from "node:fs";
import { genuine } from "./genuine.mjs";
const { secret, headers, body } = JSON.parse(readFileSync(0, "utf8"));
console.log(genuine(secret, headers, body));
`,
	"python": `import json
import sys

from genuine import genuine

given = json.load(sys.stdin)
print(str(genuine(given["secret"], given["headers"], given["body"].encode())).lower())
`,
}

// buildWebhookGuide prepares a program from webhookMains and returns the command that runs it.
// genuineCode is the source code of the function "genuine" from docs/webhooks.md.
func buildWebhookGuide(t *testing.T, language, genuineCode string) []string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	switch language {
	case "go":
		program := filepath.Join(dir, "program")
		built, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, write("main.go", webhookMains[language]), write("genuine.go", genuineCode)).CombinedOutput()
		require.NoError(t, err, string(built))
		return []string{program}
	case "js":
		write("genuine.mjs", genuineCode)
		return []string{"node", write("program.mjs", webhookMains[language])}
	}
	write("genuine.py", genuineCode)
	return []string{"python3", write("program.py", webhookMains[language])}
}

func TestWebhookGuide_programsAcceptOnlyGenuineRequests(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	page, err := os.ReadFile("../docs/webhooks.md")
	require.NoError(t, err)
	functions := map[string]string{}
	for _, block := range programBlock.FindAllStringSubmatch(string(page), -1) {
		functions[block[1]] = block[2]
	}
	const secret, otherSecret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAAA9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"type":"webhook.test","data":{"title":"Größe 🐶"}}`
	sign := func(secret string, at time.Time) string {
		signer, err := standardwebhooks.NewWebhook(secret)
		require.NoError(t, err)
		signature, err := signer.Sign("event-1", at, []byte(body))
		require.NoError(t, err)
		return signature
	}
	headers := func(at time.Time, signature string) map[string]string {
		return map[string]string{"webhook-id": "event-1", "webhook-timestamp": strconv.FormatInt(at.Unix(), 10), "webhook-signature": signature}
	}
	for language := range webhookMains {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			command := buildWebhookGuide(t, language, functions[language])
			now := time.Now() // the clock is read in the subtest, because a parallel subtest can start minutes after its parent
			type request struct {
				headers map[string]string
				body    string
				genuine bool
			}
			requests := map[string]request{
				"genuine":                        {headers(now, sign(secret, now)), body, true},
				"signed with both secrets":       {headers(now, sign(otherSecret, now)+" "+sign(secret, now)), body, true},
				"signed with another secret":     {headers(now, sign(otherSecret, now)), body, false},
				"another body":                   {headers(now, sign(secret, now)), strings.ToUpper(body), false},
				"six minutes old":                {headers(now.Add(-6*time.Minute), sign(secret, now.Add(-6*time.Minute))), body, false},
				"a time that is not a number":    {map[string]string{"webhook-id": "event-1", "webhook-timestamp": "now", "webhook-signature": sign(secret, now)}, body, false},
				"no headers":                     {map[string]string{}, body, false},
				"no id":                          {map[string]string{"webhook-timestamp": strconv.FormatInt(now.Unix(), 10), "webhook-signature": sign(secret, now)}, body, false},
				"no signature":                   {map[string]string{"webhook-id": "event-1", "webhook-timestamp": strconv.FormatInt(now.Unix(), 10)}, body, false},
				"a signature of another version": {headers(now, "v2,"+strings.TrimPrefix(sign(secret, now), "v1,")), body, false},
			}
			if language == "python" { // the headers of http.server have the names as they were sent
				requests["names with capital letters"] = request{map[string]string{"Webhook-Id": "event-1", "Webhook-Timestamp": strconv.FormatInt(now.Unix(), 10), "Webhook-Signature": sign(secret, now)}, body, true}
			}
			for name, c := range requests {
				input, err := json.Marshal(map[string]any{"secret": secret, "headers": c.headers, "body": c.body})
				require.NoError(t, err)
				run := exec.CommandContext(t.Context(), command[0], command[1:]...)
				run.Stdin = bytes.NewReader(input)
				out, err := run.CombinedOutput()
				require.NoError(t, err, "%s: %s", name, out)
				require.Equal(t, strconv.FormatBool(c.genuine), strings.TrimSpace(string(out)), name)
			}
		})
	}
	// The response of GET /events must have the members that are named in docs/webhooks.md.
	a := newApp(t, newSQLite(t))
	var feed map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(a.newCaller(t, "premium").send(http.MethodGet, "/events?limit=100", nil).requireStatus(http.StatusOK).body, &feed))
	require.Contains(t, feed, "data")
	require.Contains(t, feed, "next_cursor")
}

// TestWebhookGuide_showsTheEventOfTheContract requires that the event in docs/webhooks.md is the example of the contract, which other tests check.
func TestWebhookGuide_showsTheEventOfTheContract(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/webhooks.md")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(page), "```json\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	example, err := json.Marshal(sharedContract().doc.Components.Examples["ListEventsPremium"].Value.Value.(map[string]any)["data"].([]any)[0])
	require.NoError(t, err)
	require.JSONEq(t, string(example), block)
}
