package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// contractSamples returns the code samples that openapi.yaml contains for an operation, by programming language.
func contractSamples(t *testing.T, op *contractOperation) map[string]string {
	t.Helper()
	found := map[string]string{}
	listed, ok := op.Operation.Extensions["x-codeSamples"].([]any)
	require.True(t, ok, op.id)
	for _, s := range listed {
		sample, ok := s.(map[string]any)
		require.True(t, ok, op.id)
		found[fmt.Sprint(sample["lang"])] = fmt.Sprint(sample["source"])
	}
	return found
}

// renderSamples converts a curl command to code samples in other programming languages, and returns the samples by language. It runs the
// JavaScript module that the documentation page uses.
func renderSamples(t *testing.T, curl string) map[string]string {
	t.Helper()
	module, err := filepath.Abs("swagger/page/samples.mjs")
	require.NoError(t, err)
	const program = `import(process.argv[1]).then(({ renderSamples }) =>
  console.log(JSON.stringify(Object.fromEntries(renderSamples(process.argv[2]).map(({ lang, source }) => [lang, source])))))`
	out, err := exec.CommandContext(t.Context(), "node", "-e", program, module, curl).CombinedOutput()
	require.NoError(t, err, "rendering the samples with node failed; is node installed?\n%s", out)
	var rendered map[string]string
	require.NoError(t, json.Unmarshal(out, &rendered))
	return rendered
}

func TestCodeSamples_areConvertedToGoPythonAndTypeScript(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	rendered := renderSamples(t, `curl -sS -X POST "$REELTALLY_URL/videos?a=b&c=d" -H "Authorization: Bearer $REELTALLY_TOKEN" \
  -H "Content-Type: application/json" -d '{"z": [true, null, 1.5], "a": {"é<": "it\"s"}, "e": []}'
`)
	require.Equal(t, map[string]string{
		"Go": `package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	request, err := http.NewRequest("POST", os.Getenv("REELTALLY_URL")+"/videos?a=b&c=d", strings.NewReader(` + "`" + `{"z":[true,null,1.5],"a":{"é<":"it\"s"},"e":[]}` + "`" + `))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("REELTALLY_TOKEN"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.StatusCode, string(text))
}
`,
		"Python": `import json, os, urllib.request

request = urllib.request.Request(
    os.environ["REELTALLY_URL"] + "/videos?a=b&c=d",
    method="POST",
    headers={"Authorization": "Bearer " + os.environ["REELTALLY_TOKEN"], "Content-Type": "application/json"},
    data=json.dumps({"z": [True, None, 1.5], "a": {"é<": "it\"s"}, "e": []}).encode(),
)
with urllib.request.urlopen(request) as response:
    print(response.status, response.read().decode())
`,
		"TypeScript": `const response = await fetch(process.env.REELTALLY_URL + "/videos?a=b&c=d", {
  method: "POST",
  headers: { Authorization: ` + "`Bearer ${process.env.REELTALLY_TOKEN}`" + `, "Content-Type": "application/json" },
  body: JSON.stringify({"z":[true,null,1.5],"a":{"é<":"it\"s"},"e":[]}),
});
console.log(response.status, await response.text());
`,
	}, rendered)
}

// interpreters contains, for each programming language, a file name for a code sample and the command that runs this file.
var interpreters = map[string]struct {
	file    string
	command []string
}{
	"Shell":      {"sample.sh", []string{"bash"}},
	"Go":         {"sample.go", []string{"go", "run"}},
	"Python":     {"sample.py", []string{"python3"}},
	"TypeScript": {"sample.mjs", []string{"node"}}, // the samples contain no TypeScript types, so node can run them as JavaScript
}

// The ids of items in the examples of openapi.yaml.
const (
	exampleVideo      = "01938c32-8f07-7a46-93be-1d2c3b4a5968"
	exampleAccount    = "01938c31-52d8-7e02-b6a1-90f3c4d5e6f7"
	exampleCollection = "01938c33-1c9e-7b54-a0d2-7f6e5d4c3b2a"
	exampleReport     = "01938c50-4b1d-7e2f-8a3c-5d6e7f809a1b"
	exampleToken      = "01938c60-7a20-7c11-9d3e-4f5a6b7c8d9e"
	exampleWebhook    = "01938c70-1f4e-7a35-b1c2-8d9e0f1a2b3c"
	exampleDelivery   = "01938c71-2a5b-7c46-a2d3-9e0f1a2b3c4d"
)

// TestContractCodeSamples_runWithoutErrors runs every code sample of openapi.yaml, and every sample
// that renderSamples creates from a curl sample.
func TestContractCodeSamples_runWithoutErrors(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, op := range sharedContract().operations {
		t.Run(op.id, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, newSQLite(t))
			sampled := contractSamples(t, op)
			maps.Copy(sampled, renderSamples(t, sampled["Shell"]))
			require.Subset(t, slices.Collect(maps.Keys(sampled)), []string{"Shell", "Go", "Python", "TypeScript"})
			for lang, source := range sampled {
				c := a.newCaller(t, store.TierPremium)
				collection, hook := c.createNamedCollection("Launch"), c.createWebhook("https://hooks.example.com/")
				// Replace the example ids by ids of existing items.
				source = strings.NewReplacer(exampleVideo, c.track(tiktokLink).String(), exampleAccount, c.trackAccountLink(accountLink).String(),
					exampleCollection, collection.String(), exampleReport, c.createReport(collection).String(),
					exampleToken, c.createToken("Report script").ID.String(), exampleWebhook, hook.ID.String(), exampleDelivery, c.testWebhook(hook.ID).ID.String()).Replace(source)
				c.track("https://youtu.be/dQw4w9WgXcQ")
				c.trackAccountLink("https://www.youtube.com/@northwindstudio")
				a.fetch(factsWithViews(5))
				interpreter := interpreters[lang]
				file := filepath.Join(t.TempDir(), interpreter.file)
				if lang == "Shell" {
					source = strings.TrimSpace(source) + ` -w ' %{http_code}'`
				}
				require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
				out := strings.TrimSpace(c.runSample(t, interpreter.command[0], append(interpreter.command[1:], file)...))
				require.Regexp(t, `^2\d\d( |$)|(^| |\n)2\d\d$`, out, "%s\n%s", lang, source)
			}
		})
	}
}

// timestampPattern matches a timestamp in a JSON response, such as 2026-02-22T00:31:05Z.
var timestampPattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT[^"]+`)

func TestResponseTimes_canBeParsedInPythonAndJavaScript(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	video := c.track(tiktokLink).String()
	a.Clock.Advance(time.Microsecond)
	c.createNamedCollection("Launch")
	a.fetch(factsWithViews(5))
	all := []string{}
	for _, path := range []string{"/authenticate", "/videos/" + video, "/collections", "/accounts?include_linked=true"} {
		all = append(all, timestampPattern.FindAllString(string(c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK).body), -1)...)
	}
	require.GreaterOrEqual(t, len(all), 5)
	want := make([]string, len(all))
	for i, text := range all {
		at, err := time.Parse(time.RFC3339Nano, text)
		require.NoError(t, err)
		want[i] = strconv.FormatInt(at.UnixMilli(), 10)
	}
	for command, program := range map[string]string{
		"python3": "import sys, datetime as d\nfor t in sys.argv[1:]: print((d.datetime.fromisoformat(t) - d.datetime(1970, 1, 1, tzinfo=d.timezone.utc)) // d.timedelta(milliseconds=1))",
		"node":    "for (const t of process.argv.slice(1)) console.log(new Date(t).getTime())",
	} {
		flag := map[string]string{"python3": "-c", "node": "-e"}[command]
		require.Equal(t, want, strings.Fields(c.runSample(t, command, append([]string{flag, program}, all...)...)), command)
	}
}

// runSample runs a program as runProgram does, with the address of the server and the token of c.
func (c *caller) runSample(t *testing.T, name string, args ...string) string {
	t.Helper()
	return runProgram(t, c.app.http.URL, c.token, name, args...)
}

// runProgram runs the program with the given name and arguments, and returns its output. The program gets address and token in the
// environment variables REELTALLY_URL and REELTALLY_TOKEN.
func runProgram(t *testing.T, address, token, name string, args ...string) string {
	t.Helper()
	_, err := exec.LookPath(name)
	require.NoError(t, err, "install %s; the test needs it to run code samples", name)
	program := exec.CommandContext(t.Context(), name, args...)
	program.Env = append(os.Environ(), "REELTALLY_URL="+address, "REELTALLY_TOKEN="+token)
	out, err := program.CombinedOutput()
	require.NoError(t, err, "%s\n%s", args, out)
	return string(out)
}

// shellBlock matches a block of shell commands in a Markdown document.
var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestClientsDocument_commandsSaveVideosToAFile runs the shell commands of docs/clients.md, except the commands that install the client
// libraries. TestSDKs_installedPackagesWork runs those.
func TestClientsDocument_commandsSaveVideosToAFile(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/clients.md")
	require.NoError(t, err)
	commands := slices.DeleteFunc(shellBlock.FindAllStringSubmatch(string(page), -1), func(block []string) bool { return strings.Contains(block[1], "../reeltally") })
	require.Len(t, commands, 1)
	c := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium)
	c.track(tiktokLink)
	shell := exec.CommandContext(t.Context(), "bash", "-euc", commands[0][1])
	shell.Dir, shell.Env = t.TempDir(), append(os.Environ(), "REELTALLY_URL="+c.app.http.URL, "REELTALLY_TOKEN="+c.token)
	out, err := shell.CombinedOutput()
	require.NoError(t, err, string(out))
	saved, err := os.ReadFile(filepath.Join(shell.Dir, "videos.csv"))
	require.NoError(t, err)
	require.Contains(t, string(saved), tiktokLink)
}
