// Package browser holds the tests that look at pages as people see them, in a real browser. They fail where there is
// none: Chromium, or Chrome, has to be installed.
package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
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

// longest is how long one test may take in the browser: what a page has not shown by then never comes.
const longest = time.Minute

// tab is a tab of a browser that reaches this machine alone and remembers what went wrong in it.
type tab struct {
	context.Context
	t *testing.T

	mu       sync.Mutex
	faults   []string        // errors on the console, uncaught exceptions, breaches of a page's policy
	hosts    map[string]bool // whom pages asked for anything, as scheme://host
	protocol []string        // what of the browser's messages could not be read
}

// open starts a browser for a test, with one tab.
func open(t *testing.T) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], // headless among them
		chromedp.ExecPath(chromium(t)),
		chromedp.NoSandbox, // it needs rights that containers do not give, and the pages are our own
		chromedp.DisableGPU,
		chromedp.NoFirstRun,
		chromedp.WindowSize(1280, 1600),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), // offline, as far as pages can tell
	)
	// The test's own context ends before the browser is closed below; it would kill the browser while that writes files.
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	b := &tab{t: t, hosts: map[string]bool{}}
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(b.noteProtocol))
	t.Cleanup(cancel)
	b.Context = ctx
	chromedp.ListenTarget(ctx, b.note)
	t.Cleanup(func() {
		require.NoError(t, chromedp.Cancel(ctx))
		if t.Failed() {
			t.Logf("the browser's faults: %q; messages that could not be read: %q", b.faults, b.protocol)
		}
	})
	return b
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	require.Fail(t, "no browser: this test needs chromium (or google-chrome) in the PATH; on Debian, apt-get install chromium")
	return ""
}

func (b *tab) noteProtocol(format string, arguments ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.protocol = append(b.protocol, fmt.Sprintf(format, arguments...))
}

func (b *tab) note(event any) {
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
			b.faults = append(b.faults, text)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError {
			b.faults = append(b.faults, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		asked, err := url.Parse(e.Request.URL)
		switch {
		case err != nil:
			b.faults = append(b.faults, err.Error())
		case asked.Scheme != "data": // a picture within the page
			b.hosts[asked.Scheme+"://"+asked.Host] = true
		}
	}
}

// do runs steps in the tab and requires that each succeeds.
func (b *tab) do(steps ...chromedp.Action) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b, steps...))
}

// isClean requires that nothing went wrong so far, and that nobody but the server was asked for anything.
func (b *tab) isClean(server string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.faults)
	require.Equal(b.t, map[string]bool{server: true}, b.hosts)
}

// picture saves what the tab shows among the test's artifacts, which go test keeps with -artifacts.
func (b *tab) picture(name string) {
	b.t.Helper()
	var png []byte
	b.do(chromedp.CaptureScreenshot(&png))
	require.NoError(b.t, os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), png, 0o600))
}

// prefer makes the system's colours dark or light.
func prefer(scheme string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}})
}
