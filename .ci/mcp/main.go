// Command mcp checks the MCP endpoint of a running server, POST /mcp, with two tools of other projects. The conformance suite runs public
// scenarios. The MCP inspector lists the tools of the server and calls each of them.
//
//	go run ./.ci/mcp URL TOKEN
//
// The token must belong to a premium organisation that has videos. The command changes the data of that organisation. The table in
// docs/mcp.md lists the scenarios and says which of them apply to the server. The check also fails if the table and the suite do not have
// the same scenarios. The exit status is 1 if a check failed.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// minTools is the smallest number of tools that the server must list.
const minTools = 32

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: mcp URL TOKEN")
		os.Exit(2)
	}
	if err := runChecks(context.Background(), os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "mcp:", err)
		os.Exit(1)
	}
}

// runChecks runs all checks against the server and returns the joined errors.
func runChecks(ctx context.Context, w io.Writer, server, token string) error {
	target, err := url.Parse(server)
	if err != nil {
		return err
	}
	endpoint, err := startProxy(ctx, target, token)
	if err != nil {
		return err
	}
	c := checker{w: w, bin: filepath.Join(".ci", "mcp", "node_modules", ".bin"), endpoint: endpoint + "/mcp"}
	return errors.Join(c.runConformanceSuite(ctx), c.checkTools(ctx))
}

// startProxy starts a proxy in front of the server and returns the proxy's URL. The proxy adds the
// token to each request.
func startProxy(ctx context.Context, target *url.URL, token string) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // some scenarios test the Host header, so the proxy must not change it
		// The conformance suite and the inspector cannot send a token.
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without full duplex, net/http closes the body of the request as soon as a response begins. The proxy may not have read the end of
		// the body yet, and would then end the response early.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			panic(err)
		}
		proxy.ServeHTTP(w, r)
	})
	go func() { _ = (&http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}).Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

// checker runs the conformance suite and the inspector, which are tools of other projects, against a server.
type checker struct {
	w        io.Writer
	bin      string // path of the folder with the programs of the conformance suite and the inspector
	endpoint string // URL of /mcp at the proxy that startProxy started
}

// runTool runs the conformance suite or the MCP inspector and returns the standard output of the program.
func (c checker) runTool(ctx context.Context, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, filepath.Join(c.bin, name), args...) //nolint:gosec // the pinned tools in node_modules
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		return out, fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, errs.Bytes())
	}
	return out, nil
}

var (
	listedScenario   = regexp.MustCompile(`(?m)^  - (\S+)$`)
	declaredScenario = regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\| (passes|does not apply)[^|]* \\|$")
)

// runConformanceSuite runs every scenario of the conformance suite that applies to the server, according to docs/mcp.md.
func (c checker) runConformanceSuite(ctx context.Context) error {
	page, err := os.ReadFile(filepath.Join("docs", "mcp.md"))
	if err != nil {
		return err
	}
	applies := map[string]bool{}
	for _, row := range declaredScenario.FindAllStringSubmatch(string(page), -1) {
		applies[row[1]] = row[2] == "passes"
	}
	list, err := c.runTool(ctx, "conformance", "list", "--server")
	if err != nil {
		return err
	}
	var errs []error
	passed := 0
	for _, found := range listedScenario.FindAllStringSubmatch(string(list), -1) {
		wanted, declared := applies[found[1]]
		delete(applies, found[1])
		if !declared {
			errs = append(errs, fmt.Errorf("the conformance suite has the scenario %s, but docs/mcp.md does not list it", found[1]))
		}
		if !wanted {
			continue
		}
		if _, err := c.runTool(ctx, "conformance", "server", "--url", c.endpoint, "--scenario", found[1]); err != nil {
			errs = append(errs, err)
			continue
		}
		passed++
		_, _ = fmt.Fprintln(c.w, "conformance:", found[1], "passes")
	}
	for name := range applies {
		errs = append(errs, fmt.Errorf("docs/mcp.md lists the scenario %s, but the conformance suite does not have it", name))
	}
	if passed == 0 {
		errs = append(errs, errors.New("no scenario of the conformance suite passed"))
	}
	return errors.Join(errs...)
}

// checkTools lists the tools of the server with the MCP inspector, and makes all calls that calls.go contains. It fails if a listed tool is
// not called.
func (c checker) checkTools(ctx context.Context) error {
	var listed struct {
		Tools []struct{ Name string }
	}
	if err := c.runInspector(ctx, &listed, "--method", "tools/list"); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(c.w, "inspector:", len(listed.Tools), "tools")
	if len(listed.Tools) < minTools {
		return fmt.Errorf("the inspector lists %d tools, but there must be at least %d", len(listed.Tools), minTools)
	}
	left := map[string]bool{}
	for _, t := range listed.Tools {
		left[t.Name] = true
	}
	known := map[string]string{}
	for _, next := range calls {
		delete(left, next.tool)
		if err := c.callTool(ctx, next, known); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(c.w, "inspector:", next.tool, "answers")
	}
	for name := range left {
		return fmt.Errorf("the tool %s is not called: add it to calls in .ci/mcp/calls.go", name)
	}
	return nil
}

// callTool calls a tool through the MCP inspector. The map `known` contains the values that earlier
// calls saved. callTool adds the values that next.saves lists.
func (c checker) callTool(ctx context.Context, next call, known map[string]string) error {
	args := []string{"--method", "tools/call", "--tool-name", next.tool}
	for _, a := range next.arguments {
		for name, value := range known {
			a = strings.ReplaceAll(a, "{"+name+"}", value)
		}
		args = append(args, "--tool-arg", a)
	}
	var result struct {
		IsError           bool
		StructuredContent map[string]any
		Content           []struct{ Text string }
	}
	if err := c.runInspector(ctx, &result, args...); err != nil {
		return err
	}
	if result.IsError || result.StructuredContent == nil {
		return fmt.Errorf("%v: %v", args, result.Content)
	}
	for name, path := range next.saves {
		value, ok := stringAt(result.StructuredContent, strings.Split(path, "."))
		if !ok {
			return fmt.Errorf("the result of the tool %s has no value at %s: %v", next.tool, path, result.StructuredContent)
		}
		known[name] = value
	}
	return nil
}

// runInspector runs the MCP inspector with args and decodes its JSON output into the value to which result points.
func (c checker) runInspector(ctx context.Context, result any, args ...string) error {
	out, err := c.runTool(ctx, "mcp-inspector", append([]string{"--cli", c.endpoint, "--transport", "http"}, args...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, result)
}

// stringAt returns the string at a path of member names in a decoded JSON value. It returns false if
// there is no such string.
func stringAt(v any, path []string) (string, bool) {
	for _, step := range path {
		switch value := v.(type) {
		case map[string]any:
			v = value[step]
		case []any:
			// In an array, each step of the path leads to the first entry.
			if len(value) == 0 {
				return "", false
			}
			v = value[0]
		default: // the value has no members
			return "", false
		}
	}
	text, ok := v.(string)
	return text, ok
}
