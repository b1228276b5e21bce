package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/store/storetest"
)

// openTerminal opens a pseudo-terminal of 80 columns. It returns the shown text, a writer for typed
// text, and the tested program's input and output.
func openTerminal(t *testing.T) (screen *boottest.Output, keyboard io.Writer, program *os.File) {
	t.Helper()
	master, program, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(program, &pty.Winsize{Rows: 24, Cols: 80}))
	screen = boottest.NewOutput()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(screen, master) // Copy returns an error when the program closes its end of the terminal
	}()
	t.Cleanup(func() {
		require.NoError(t, program.Close())
		<-done
		require.NoError(t, master.Close())
	})
	return screen, master, program
}

// runOnTerminal runs reeltally with the terminal as standard input, output and error.
func runOnTerminal(t *testing.T, terminal *os.File, env map[string]string, args ...string) int {
	t.Helper()
	return boot.Run(t.Context(), boot.Process{Name: "reeltally", Args: args, Stdin: terminal, Stdout: terminal, Stderr: terminal,
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, run)
}

func TestLogin_doesNotShowTheTokenOnATerminal(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer rt_secret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, `{"organisation":{"name":"Über & Co"}}`)
	}))
	t.Cleanup(server.Close)
	screen, keyboard, terminal := openTerminal(t)
	showing, err := term.GetState(int(terminal.Fd()))
	require.NoError(t, err)
	status := make(chan int)
	file := filepath.Join(t.TempDir(), "login.json")
	go func() {
		status <- runOnTerminal(t, terminal, map[string]string{"REELTALLY_LOGIN_FILE": file}, "login", "--url", server.URL)
	}()
	require.Eventually(t, func() bool { return strings.Contains(screen.String(), "Token: ") }, startTimeout, 10*time.Millisecond)
	require.Eventually(t, func() bool { // wait, because the program prints its prompt shortly before it hides what is typed
		hiding, err := term.GetState(int(terminal.Fd()))
		return err == nil && *hiding != *showing
	}, startTimeout, 10*time.Millisecond)
	_, err = io.WriteString(keyboard, "rt_secret\r")
	require.NoError(t, err)
	require.Zero(t, <-status, screen)
	screen.Await(t, startTimeout, "as Über & Co")
	require.NotContains(t, screen.String(), "rt_secret")
	stored, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(stored), "rt_secret")
}

func TestVideosList_fitsTheTerminal(t *testing.T) {
	t.Parallel()
	title := strings.Repeat("A long title with \\u001b[2J控制字符 ", 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[{"ad_id":"01938c32-8f07-7a46-93be-1d2c3b4a5968","platform":"x","username":"u","title":"`+title+`","latest_views":1200}],"pagination":{}}`)
	}))
	t.Cleanup(server.Close)
	env := map[string]string{"REELTALLY_URL": server.URL, "REELTALLY_TOKEN": "rt_x"}
	screen, _, terminal := openTerminal(t)
	require.Zero(t, runOnTerminal(t, terminal, env, "list"), screen)
	screen.Await(t, startTimeout, "1,200")
	for line := range strings.Lines(screen.String()) {
		require.LessOrEqual(t, runewidth.StringWidth(strings.TrimRight(line, "\r\n")), 80)
	}
	require.NotContains(t, screen.String(), "\x1b")

	var file bytes.Buffer
	require.Zero(t, boot.Run(t.Context(), boot.Process{Name: "reeltally", Args: []string{"list"}, Stdout: &file, Stderr: io.Discard,
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, run))
	require.Contains(t, file.String(), strings.Repeat("A long title with [2J控制字符 ", 9), "a table in a file must not be shortened")
}

func TestExport_showsABarOnATerminal(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Accept"), "text/csv") {
			w.Header().Set("Content-Type", "text/csv")
			_, _ = io.WriteString(w, "ad_id;title\r\n1;\"two\nlines\"\r\n2;x\r\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[],"pagination":{"total":2}}`)
	}))
	t.Cleanup(server.Close)
	env := map[string]string{"REELTALLY_URL": server.URL, "REELTALLY_TOKEN": "rt_x"}
	screen, _, terminal := openTerminal(t)
	file := filepath.Join(t.TempDir(), "videos.csv")
	require.Zero(t, runOnTerminal(t, terminal, env, "export", "videos", "--format", "csv-semicolon", "-o", file), screen)
	require.Eventually(t, func() bool { return strings.Contains(screen.String(), "2 of 2 videos") }, startTimeout, 10*time.Millisecond, screen)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "ad_id;title\r\n1;\"two\nlines\"\r\n2;x\r\n", string(written))

	require.Zero(t, runOnTerminal(t, terminal, env, "export", "collections", "-o", file), screen)
	require.Eventually(t, func() bool { return strings.Contains(screen.String(), "export 2 collections") }, startTimeout, 10*time.Millisecond, "the bar must show no total, because the number of collections is unknown: %s", screen)

	rows, _, rowsTerminal := openTerminal(t)
	require.Zero(t, runOnTerminal(t, rowsTerminal, env, "export", "videos"), rows)
	rows.Await(t, startTimeout, "2;x")
	require.NotContains(t, rows.String(), "of 2 videos", "no progress bar may be drawn if the rows are printed on the terminal")

	var out, lines bytes.Buffer
	require.Zero(t, boot.Run(t.Context(), boot.Process{Name: "reeltally", Args: []string{"export", "videos"}, Stdout: &out, Stderr: &lines,
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, run))
	require.Contains(t, lines.String(), `"msg":"task ended","task":"export"`)
	require.NotContains(t, lines.String(), `"points`, "if an export has no history points, its log must not mention points")
	require.NotContains(t, lines.String(), "\x1b")
}

func TestNames_areShownWithoutControlCharacters(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	operator := func(args ...string) (status int, stdout, stderr string) {
		return boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": db.URL}, args...)
	}
	operator("org", "create", "--name", "Old")
	operator("token", "create", "--org", "Old", "--name", "Old")
	const name = "A\x1b[31m\rB\nC" // earlier versions stored such names
	db.Exec(t, "UPDATE organisations SET name = ?", name)
	db.Exec(t, "UPDATE api_tokens SET name = ?", name)
	for _, command := range [][]string{{"org", "list"}, {"token", "list", "--org", name}, {"org", "set-tier", name, "basic"}, {"org", "set-operator", name, "yes"}, {"login-link", "--org", name}} {
		status, stdout, stderr := operator(command...)
		require.Zero(t, status, stderr)
		require.NotContains(t, stdout+stderr, "\x1b", command)
		require.NotContains(t, stdout+stderr, "\r", command)
		require.Contains(t, stdout+stderr, "A[31m B C", command)
	}
}

func TestOrgCreate_warnsIfAnotherOrganisationHasTheName(t *testing.T) {
	t.Parallel()
	_, operator := newDatabase(t)
	status, stdout, stderr := operator("org", "create", "--name", " N ")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "Created organisation N")
	require.Regexp(t, `Another organisation has the name N too: [0-9a-f-]{36}\.`, stderr)
	status, _, stderr = operator("org", "create", "--name", "n")
	require.Zero(t, status, stderr)
	require.Empty(t, stderr)
}
