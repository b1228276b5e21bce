// Command samples writes, behind every sample for curl in a contract, the same request in Python and TypeScript.
//
//	go run ./.ci/samples openapi.yaml
//
// The samples for curl, and those for Go, are written by hand and stay as they are.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "samples:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("want the path of a contract")
	}
	path := filepath.Clean(args[0])
	was, err := os.ReadFile(path) //nolint:gosec // whoever runs it says which file
	if err != nil {
		return err
	}
	is, err := derive(string(was))
	if err != nil || is == string(was) {
		return err
	}
	return os.WriteFile(path, []byte(is), 0o600) //nolint:gosec // the same one
}

// How a sample stands in the contract.
const (
	entry  = "        - lang: "
	source = "          source: |\n"
	indent = "            "
)

// derive returns the contract with its derived samples.
func derive(contract string) (string, error) {
	var out strings.Builder
	lines := strings.SplitAfter(contract, "\n")
	for i := 0; i < len(lines); {
		lang, isEntry := strings.CutPrefix(lines[i], entry)
		end := i + 1
		for isEntry && end < len(lines) && (strings.HasPrefix(lines[end], "          ") || lines[end] == "\n" && strings.HasPrefix(lines[end+1], indent)) {
			end++
		}
		sample := strings.Join(lines[i:end], "")
		i = end
		switch strings.TrimSpace(lang) {
		case "Python", "TypeScript":
			continue
		}
		out.WriteString(sample)
		if _, text, found := strings.Cut(sample, source); found && strings.TrimSpace(lang) == "Shell" {
			r, err := parse(strings.ReplaceAll("\n"+text, "\n"+indent, "\n"))
			if err != nil {
				return "", fmt.Errorf("%w in the sample\n%s", err, text)
			}
			for _, derived := range [][3]string{{"Python", "urllib", r.python()}, {"TypeScript", "fetch", r.typescript()}} {
				fmt.Fprintf(&out, "%s%s\n          label: %s\n%s", entry, derived[0], derived[1], source)
				for line := range strings.Lines(derived[2]) {
					if line != "\n" {
						line = indent + line
					}
					out.WriteString(line)
				}
			}
		}
	}
	return out.String(), nil
}

// request is what a sample asks for.
type request struct {
	method, target string
	headers        [][2]string // but for Authorization
	body           string      // JSON; "" for none
}

const (
	base          = "$REELTALLY_URL"
	authorization = "Authorization: Bearer $REELTALLY_TOKEN"
)

// parse reads a command line for curl.
func parse(command string) (request, error) {
	words := split(command)
	r := request{method: "GET"}
	authorised := false
	for i := 0; i < len(words); i++ {
		option := words[i]
		if strings.HasPrefix(option, "-") && option != "-sS" {
			if i++; i == len(words) {
				return r, fmt.Errorf("%s without a value", option)
			}
		}
		switch {
		case i == 0 && option == "curl", option == "-sS":
		case option == "-X":
			r.method = words[i]
		case option == "-d":
			r.body = words[i]
		case option == "-H" && words[i] == authorization:
			authorised = true
		case option == "-H":
			name, value, ok := strings.Cut(words[i], ": ")
			if !ok {
				return r, fmt.Errorf("%q is no header", words[i])
			}
			r.headers = append(r.headers, [2]string{name, value})
		case strings.HasPrefix(option, base):
			r.target = strings.TrimPrefix(option, base)
		default:
			return r, fmt.Errorf("%q is nothing that can be derived", option)
		}
	}
	if !authorised || r.target == "" || r.body != "" && !json.Valid([]byte(r.body)) {
		return r, errors.New("no authorization, no address, or a body that is no JSON")
	}
	return r, nil
}

// split splits a command line as a shell does, but for variables.
func split(command string) (words []string) {
	var word strings.Builder
	quote, begun := rune(0), false
	for _, c := range strings.ReplaceAll(command, "\\\n", " ") {
		switch {
		case quote == 0 && (c == ' ' || c == '\n'):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
			continue
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		default:
			word.WriteRune(c)
		}
		begun = true
	}
	return words
}

func (r request) python() string {
	var out strings.Builder
	imports := "import os, urllib.request"
	if r.body != "" {
		imports = "import json, os, urllib.request"
	}
	fmt.Fprintf(&out, "%s\n\nrequest = urllib.request.Request(\n    os.environ[\"REELTALLY_URL\"] + %q,\n    method=%q,\n", imports, r.target, r.method)
	out.WriteString(`    headers={"Authorization": "Bearer " + os.environ["REELTALLY_TOKEN"]`)
	for _, h := range r.headers {
		fmt.Fprintf(&out, ", %q: %q", h[0], h[1])
	}
	out.WriteString("},\n")
	if r.body != "" {
		fmt.Fprintf(&out, "    data=json.dumps(%s).encode(),\n", literal(r.body, map[any]string{true: "True", false: "False", nil: "None"}))
	}
	out.WriteString(")\nwith urllib.request.urlopen(request) as answer:\n    print(answer.status, answer.read().decode())\n")
	return out.String()
}

func (r request) typescript() string {
	var out strings.Builder
	fmt.Fprintf(&out, "const answer = await fetch(process.env.REELTALLY_URL + %q, {\n", r.target)
	if r.method != "GET" {
		fmt.Fprintf(&out, "  method: %q,\n", r.method)
	}
	out.WriteString("  headers: { Authorization: `Bearer ${process.env.REELTALLY_TOKEN}`")
	for _, h := range r.headers {
		fmt.Fprintf(&out, ", %q: %q", h[0], h[1])
	}
	out.WriteString(" },\n")
	if r.body != "" {
		fmt.Fprintf(&out, "  body: JSON.stringify(%s),\n", literal(r.body, map[any]string{true: "true", false: "false", nil: "null"}))
	}
	out.WriteString("});\nconsole.log(answer.status, await answer.text());\n")
	return out.String()
}

// literal writes JSON as a literal of a language that has other words for true, false and null.
func literal(body string, words map[any]string) string {
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	var out strings.Builder
	value(&out, decoder, words)
	return out.String()
}

func value(out *strings.Builder, d *json.Decoder, words map[any]string) {
	token, err := d.Token()
	if err != nil {
		panic(err) // it was valid when it was parsed
	}
	switch token := token.(type) {
	case json.Delim:
		out.WriteString(token.String())
		for first := true; d.More(); first = false {
			if !first {
				out.WriteString(", ")
			}
			if token == '{' {
				value(out, d, words)
				out.WriteString(": ")
			}
			value(out, d, words)
		}
		end, err := d.Token()
		if err != nil && !errors.Is(err, io.EOF) {
			panic(err)
		}
		fmt.Fprint(out, end)
	case string:
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(token); err != nil {
			panic(err)
		}
		out.WriteString(strings.TrimSuffix(text.String(), "\n"))
	case json.Number:
		out.WriteString(token.String())
	default:
		out.WriteString(words[token])
	}
}
