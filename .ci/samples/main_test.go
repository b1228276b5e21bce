package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// contract is a contract with one operation, whose samples are these.
func contract(samples ...string) string {
	return "paths:\n  /videos:\n    post:\n      x-codeSamples:\n" + strings.Join(samples, "") + "      responses: {}\n"
}

func sample(lang, label string, lines ...string) string {
	return entry + lang + "\n          label: " + label + "\n" + source + indent + strings.Join(lines, "\n"+indent) + "\n"
}

var (
	curl = sample("Shell", "curl",
		`curl -sS -X POST "$REELTALLY_URL/videos?a=b&c=d" -H "Authorization: Bearer $REELTALLY_TOKEN" \`,
		`  -H "Content-Type: application/json" -d '{"z": [true, null, 1.50], "a": {"é<": "it\"s"}, "e": []}'`)
	golang = sample("Go", "client", "by hand()")
)

func TestDerive_writesTheSameRequest(t *testing.T) {
	t.Parallel()
	got, err := derive(contract(curl, golang))
	require.NoError(t, err)
	blank := strings.NewReplacer("\n"+indent+"\n", "\n\n")
	require.Equal(t, contract(curl, blank.Replace(sample("Python", "urllib",
		`import json, os, urllib.request`,
		``,
		`request = urllib.request.Request(`,
		`    os.environ["REELTALLY_URL"] + "/videos?a=b&c=d",`,
		`    method="POST",`,
		`    headers={"Authorization": "Bearer " + os.environ["REELTALLY_TOKEN"], "Content-Type": "application/json"},`,
		`    data=json.dumps({"z": [True, None, 1.50], "a": {"é<": "it\"s"}, "e": []}).encode(),`,
		`)`,
		`with urllib.request.urlopen(request) as answer:`,
		`    print(answer.status, answer.read().decode())`)),
		sample("TypeScript", "fetch",
			`const answer = await fetch(process.env.REELTALLY_URL + "/videos?a=b&c=d", {`,
			`  method: "POST",`,
			"  headers: { Authorization: `Bearer ${process.env.REELTALLY_TOKEN}`, \"Content-Type\": \"application/json\" },",
			`  body: JSON.stringify({"z": [true, null, 1.50], "a": {"é<": "it\"s"}, "e": []}),`,
			`});`,
			`console.log(answer.status, await answer.text());`),
		golang), got)

	again, err := derive(got)
	require.NoError(t, err)
	require.Equal(t, got, again, "what was derived is derived anew, and what was written by hand stays")
}

func TestDerive_refusesWhatItWouldGetWrong(t *testing.T) {
	t.Parallel()
	const good = `curl "$REELTALLY_URL/x" -H "Authorization: Bearer $REELTALLY_TOKEN"`
	_, err := derive(contract(sample("Shell", "curl", good)))
	require.NoError(t, err)
	for _, bad := range []string{
		`curl "$REELTALLY_URL/x"`, `curl "https://elsewhere.test" -H "Authorization: Bearer $REELTALLY_TOKEN"`, good + ` --compressed`, good + ` -d '{'`,
		good + ` -X`, good + ` -H "nonsense"`, good + ` | jq .`, `wget "$REELTALLY_URL/x"`,
	} {
		_, err := derive(contract(sample("Shell", "curl", bad)))
		require.Error(t, err, bad)
	}
}

func TestRun_writesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "openapi.yaml")
	require.NoError(t, os.WriteFile(path, []byte(contract(curl)), 0o600))
	require.NoError(t, run([]string{path}))
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(written), "lang: Python")
	require.Error(t, run(nil))
	require.Error(t, run([]string{path + ".missing"}))
}
