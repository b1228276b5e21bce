// Command mcp lets tools that are not ours judge POST /mcp of a running server: the public conformance scenarios and the MCP
// inspector, which lists the tools and calls each.
//
//	go run ./.ci/mcp URL TOKEN
//
// The token is one of a premium organisation that has videos; what the organisation has is changed. Which scenarios there
// are, and which of them apply, is read from the table in docs/mcp.md; one that stands only there or only in the suite is a
// failure. The exit status is 1 when anything failed.
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
	"strconv"
	"strings"
	"time"
)

// fewest is how many tools there must be at least.
const fewest = 32

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "mcp: takes the server's URL and a token")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "mcp:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, server, token string) error {
	target, err := url.Parse(server)
	if err != nil {
		return err
	}
	endpoint, err := authorized(ctx, target, token)
	if err != nil {
		return err
	}
	j := judge{w: w, bin: filepath.Join(".ci", "mcp", "node_modules", ".bin"), endpoint: endpoint + "/mcp"}
	return errors.Join(j.conformance(ctx), j.inspect(ctx))
}

// authorized is an address at which the server is reached with the token: neither tool can be told one.
func authorized(ctx context.Context, target *url.URL, token string) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	proxy := &httputil.ReverseProxy{Transport: retrying{&http.Transport{}}, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // what is sent about the host is a part of what is judged
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}}
	go func() { _ = (&http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute}).Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

// retrying is a RoundTripper that repeats a request after a 429, once Retry-After has passed. The inspector opens a session for each
// call, so it sends more requests than the server accepts in a minute.
type retrying struct{ next http.RoundTripper }

func (t retrying) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	for {
		if len(body) > 0 {
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		resp, err := t.next.RoundTrip(r)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests {
			return resp, err
		}
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

type judge struct {
	w        io.Writer
	bin      string
	endpoint string
}

func (j judge) command(ctx context.Context, name string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, filepath.Join(j.bin, name), args...) //nolint:gosec // the pinned tools beside this program
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return out, fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, errs.Bytes())
	}
	return out, nil
}

var (
	listedScenario   = regexp.MustCompile(`(?m)^  - (\S+)$`)
	declaredScenario = regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\| (passes|does not apply)[^|]* \\|$")
)

// conformance runs every scenario that applies.
func (j judge) conformance(ctx context.Context) error {
	page, err := os.ReadFile(filepath.Join("docs", "mcp.md"))
	if err != nil {
		return err
	}
	applies := map[string]bool{}
	for _, row := range declaredScenario.FindAllStringSubmatch(string(page), -1) {
		applies[row[1]] = row[2] == "passes"
	}
	list, err := j.command(ctx, "conformance", "list", "--server")
	if err != nil {
		return err
	}
	var errs []error
	passed := 0
	for _, found := range listedScenario.FindAllStringSubmatch(string(list), -1) {
		wanted, declared := applies[found[1]]
		delete(applies, found[1])
		if !declared {
			errs = append(errs, fmt.Errorf("docs/mcp.md says nothing about the scenario %s", found[1]))
		}
		if !wanted {
			continue
		}
		if _, err := j.command(ctx, "conformance", "server", "--url", j.endpoint, "--scenario", found[1]); err != nil {
			errs = append(errs, err)
			continue
		}
		passed++
		_, _ = fmt.Fprintln(j.w, "conformance:", found[1], "passes")
	}
	for name := range applies {
		errs = append(errs, fmt.Errorf("docs/mcp.md names the scenario %s, which the suite does not have", name))
	}
	if passed == 0 {
		errs = append(errs, errors.New("no scenario passed"))
	}
	return errors.Join(errs...)
}

// inspect lists the tools and calls each of them once.
func (j judge) inspect(ctx context.Context) error {
	var listed struct {
		Tools []struct{ Name string }
	}
	if err := j.ask(ctx, &listed, "--method", "tools/list"); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(j.w, "inspector:", len(listed.Tools), "tools")
	if len(listed.Tools) < fewest {
		return fmt.Errorf("the inspector lists %d tools; there must be %d", len(listed.Tools), fewest)
	}
	left := map[string]bool{}
	for _, t := range listed.Tools {
		left[t.Name] = true
	}
	known := map[string]string{}
	for _, c := range calls {
		delete(left, c.tool)
		if err := j.call(ctx, c, known); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(j.w, "inspector:", c.tool, "answers")
	}
	for name := range left {
		return fmt.Errorf("the tool %s is not called: add it to the calls", name)
	}
	return nil
}

func (j judge) call(ctx context.Context, c call, known map[string]string) error {
	args := []string{"--method", "tools/call", "--tool-name", c.tool}
	for _, a := range c.arguments {
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
	if err := j.ask(ctx, &result, args...); err != nil {
		return err
	}
	if result.IsError || result.StructuredContent == nil {
		return fmt.Errorf("%v: %v", args, result.Content)
	}
	for name, path := range c.learns {
		value, ok := at(result.StructuredContent, strings.Split(path, "."))
		if !ok {
			return fmt.Errorf("%s answers without %s: %v", c.tool, path, result.StructuredContent)
		}
		known[name] = value
	}
	return nil
}

func (j judge) ask(ctx context.Context, into any, args ...string) error {
	out, err := j.command(ctx, "mcp-inspector", append([]string{"--cli", j.endpoint, "--transport", "http"}, args...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

// at is the text at a path of members, in which 0 is the first entry of an array.
func at(v any, path []string) (string, bool) {
	for _, step := range path {
		switch value := v.(type) {
		case map[string]any:
			v = value[step]
		case []any:
			if len(value) == 0 {
				return "", false
			}
			v = value[0]
		}
	}
	text, ok := v.(string)
	return text, ok
}
