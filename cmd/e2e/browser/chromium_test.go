// Package browser tests the web pages in a real browser. The tests fail if neither Chromium nor Chrome is installed. Start reading in
// openBrowser, which starts a browser.
package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// namedHost is a host name that the browser resolves to this machine. A page at http://127.0.0.1 is a secure context. A page at
// http://reeltally.test is not.
const namedHost = "reeltally.test"

// testTimeout is the maximum duration of one browser test.
const testTimeout = 8 * time.Minute

// tab is a browser tab that can connect only to this machine. It records the errors of its pages and the hosts that they request.
type tab struct {
	context.Context
	t *testing.T

	mu       sync.Mutex
	faults   []string        // console errors, uncaught exceptions, violations of the content security policy
	hosts    map[string]bool // origins that pages requested, as scheme://host
	protocol []string        // errors of the connection to the browser
}

// openBrowser starts a browser for a test and returns its only tab. The browser is stopped when the test ends.
func openBrowser(t *testing.T) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], // the default options include headless mode
		chromedp.ExecPath(findChromium(t)),
		chromedp.NoSandbox, // the browser's sandbox does not work in containers, and the pages are trusted
		chromedp.DisableGPU,
		chromedp.NoFirstRun,
		chromedp.WindowSize(1280, 1600),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP "+namedHost+" 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), // pages can connect only to this machine
	)
	// The browser does not use t.Context(). That context ends before the functions of t.Cleanup run, and its end would kill the browser while the
	// browser writes files.
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	b := &tab{t: t, hosts: map[string]bool{}}
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(b.recordProtocolError))
	t.Cleanup(cancel)
	b.Context = ctx
	chromedp.ListenTarget(ctx, b.recordEvent)
	t.Cleanup(func() {
		require.NoError(t, chromedp.Cancel(ctx))
		if t.Failed() {
			t.Logf("errors in the browser: %q; errors of the connection to it: %q", b.faults, b.protocol)
		}
	})
	return b
}

// findChromium returns the path of the installed Chromium or Chrome. It fails the test if neither is installed. It prefers the headless shell, which is
// Chromium without windows, because the headless shell needs a quarter less CPU time.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	require.Fail(t, "this test needs chromium or google-chrome in the PATH; on Debian: apt-get install chromium-headless-shell")
	return ""
}

// recordProtocolError adds an error of the connection between the test and the browser to b.protocol. Its parameters are those of
// fmt.Sprintf.
func (b *tab) recordProtocolError(format string, arguments ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.protocol = append(b.protocol, fmt.Sprintf(format, arguments...))
}

// abortedRequest matches the messages of htmx about a request that it has aborted itself, for example because the user closed the dialog. If a request
// fails for another reason, the console also has a message that this expression does not match.
var abortedRequest = regexp.MustCompile(`^console: "htmx:(sendAbort|afterRequest), `)

// recordEvent handles an event of the browser. It adds errors of pages to b.faults, and the origins of requests to b.hosts.
func (b *tab) recordEvent(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, "exception: "+e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeAssert {
			text := "console:"
			for _, argument := range e.Args {
				text += " " + string(argument.Value) + argument.Description
			}
			if !abortedRequest.MatchString(text) {
				b.faults = append(b.faults, text)
			}
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError {
			b.faults = append(b.faults, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		requested, err := url.Parse(e.Request.URL)
		switch {
		case err != nil:
			b.faults = append(b.faults, err.Error())
		case requested.Scheme != "data": // a data URL contains its content, so the browser requests nothing
			b.hosts[requested.Scheme+"://"+requested.Host] = true
		}
	}
}

// runSteps runs steps in the tab, such as a click, and requires that all steps succeed.
func (b *tab) runSteps(steps ...chromedp.Action) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b, steps...))
}

// requireNoPageErrors requires that the opened pages caused no errors, and sent requests only to the given origin, for example to
// http://127.0.0.1:8080.
func (b *tab) requireNoPageErrors(origin string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.faults)
	require.Equal(b.t, map[string]bool{origin: true}, b.hosts)
}

// saveScreenshot saves a screenshot as an artifact of the test. go test keeps artifacts with the flag -artifacts.
func (b *tab) saveScreenshot(name string) {
	b.t.Helper()
	var png []byte
	b.runSteps(chromedp.CaptureScreenshot(&png))
	require.NoError(b.t, os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), png, 0o600))
}

// preferColours returns a step after which the browser tells pages that the user prefers the given colour scheme, "dark" or "light".
func preferColours(scheme string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}})
}
