package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store/storetest"
)

// newCaller starts `reeltally up` with the demo organisation. The returned function runs commands
// of reeltally with the returned login file.
func newCaller(t *testing.T) (u runningReelTally, loginFile string, call func(stdin string, args ...string) (status int, stdout, stderr string)) {
	t.Helper()
	u = startReelTally(t, map[string]string{"REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite"), "REELTALLY_DATA_DIR": t.TempDir()})
	loginFile = filepath.Join(t.TempDir(), "folder", "login.json")
	return u, loginFile, func(stdin string, args ...string) (int, string, string) {
		return boottest.Run(t, run, strings.NewReader(stdin), map[string]string{"REELTALLY_LOGIN_FILE": loginFile}, args...)
	}
}

// newSignedInCaller starts `reeltally up` with the demo organisation and signs in. Both returned functions run commands of
// reeltally; succeed requires that the command succeeds, and returns its standard output.
func newSignedInCaller(t *testing.T) (call func(stdin string, args ...string) (status int, stdout, stderr string), succeed func(args ...string) string) {
	t.Helper()
	u, _, call := newCaller(t)
	status, _, stderr := call(u.token, "login", "--url", u.base)
	require.Zero(t, status, stderr)
	return call, func(args ...string) string {
		t.Helper()
		status, stdout, stderr := call("", args...)
		require.Zero(t, status, "%s: %s", args, stderr)
		return stdout
	}
}

func TestLogin_checksTheTokenAndStoresItInAPrivateFile(t *testing.T) {
	t.Parallel()
	u, loginFile, call := newCaller(t)
	status, _, stderr := call("", "list")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, `run "reeltally login"`)

	status, _, stderr = call("rt_wrong\n", "login", "--url", u.base)
	require.Equal(t, 1, status)
	require.Regexp(t, `\(code [a-z_]+, request [^)]+\); run "reeltally login" with a valid token`, stderr)
	require.NoFileExists(t, loginFile)
	status, _, _ = call("", "login", "--url", u.base)
	require.Equal(t, 2, status, "login must refuse an empty token")
	status, _, _ = call(u.token, "login", "--url", "example.com")
	require.Equal(t, 2, status, "login must refuse an address that is no URL")

	status, stdout, stderr := call(u.token+"\n", "login", "--url", u.base+"/")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "Logged in to "+u.base+" as ")
	require.NotContains(t, stdout+stderr, u.token)
	info, err := os.Stat(loginFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	status, _, stderr = call("", "list", "--limit", "1")
	require.Zero(t, status, stderr)

	status, stdout, _ = call("", "logout")
	require.Zero(t, status)
	require.Contains(t, stdout, "Logged out.")
	status, _, _ = call("", "list")
	require.Equal(t, 2, status)
	status, stdout, _ = call("", "logout")
	require.Zero(t, status)
	require.Contains(t, stdout, "No login was stored.")
}

func TestLogin_tokenIsNotSentToAnotherServer(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("no request may be sent to the other server") }))
	t.Cleanup(other.Close)
	file := filepath.Join(t.TempDir(), "login.json")
	require.NoError(t, loginFile{file}.writeLogin(savedLogin{"http://127.0.0.1:1", "rt_secret"}))
	env := map[string]string{"REELTALLY_LOGIN_FILE": file, "REELTALLY_URL": other.URL}
	status, _, stderr := boottest.Run(t, run, nil, env, "list")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "there is no token for "+other.URL)
}

func TestCommandLine_callsTheAPI(t *testing.T) {
	t.Parallel()
	call, succeed := newSignedInCaller(t)
	const link = "https://www.tiktok.com/@northwind.studio/video/7338812345678901234"
	var first struct{ ID, Name string }
	require.NoError(t, json.Unmarshal([]byte(strings.SplitN(succeed("collections", "list", "--json"), "\n", 2)[0]), &first))
	require.Contains(t, succeed("collections", "list"), first.ID)

	require.Regexp(t, `^tracked  `+link+`  [0-9a-f-]{36}\n$`, succeed("track", "--collection", first.Name, link))
	require.Contains(t, succeed("track", link), "already_tracked")
	status, stdout, stderr := call("https://example.com/clip\n\n"+link+"\n", "track", "--json")
	require.Equal(t, 1, status, "track must fail if a link was not saved")
	require.Contains(t, stderr, "not saved: 1 link")
	require.Equal(t, 2, strings.Count(stdout, "\n"), stdout)
	require.Regexp(t, `"success":false`, stdout)
	status, _, stderr = call("", "track", "--collection", "Unknown", link)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, `there is no collection "Unknown"`)
	status, _, _ = call("\n", "track")
	require.Equal(t, 2, status, "track must fail if it gets no link")

	lines := strings.Split(strings.TrimSpace(succeed("list", "--order-by", "latest_views", "--limit", "3")), "\n")
	require.Len(t, lines, 4)
	require.Contains(t, lines[0], "VIEWS")
	require.Equal(t, 61, strings.Count(succeed("list", "--limit", "0", "--json"), "\n"))
	require.Regexp(t, `(?m)^PLATFORM +ACCOUNT`, succeed("accounts", "list", "--order-by", "total_views"))
	for _, wrong := range []struct{ args, want string }{
		{"list --platform vine", `--platform must be tiktok, instagram, youtube or facebook, not "vine"`},
		{"list --order-by bogus --fetch-status bogus", "; --fetch-status must be"},
		{"accounts list --order-by bogus", "--order-by must be"},
		{"accounts track --type foo https://www.tiktok.com/@harbour.kitchen", `--type must be latest_30, latest_200, new_only or all, not "foo"`},
	} {
		status, _, stderr = call("", strings.Fields(wrong.args)...)
		require.Equal(t, 2, status, wrong.args)
		require.Contains(t, stderr, wrong.want)
		require.NotContains(t, stderr, "_type")
	}

	var demo client.Video
	require.NoError(t, json.Unmarshal([]byte(succeed("list", "--order-by", "latest_views", "--limit", "1", "--json")), &demo))
	id := demo.AdID.String()
	require.Contains(t, succeed("show", id), formatCount(demo.LatestViews))
	require.Contains(t, succeed("show", id, "--json"), `"ad_id":"`+id+`"`)
	chart := succeed("history", id, "--days", "7")
	require.Contains(t, chart, "█")
	require.Contains(t, chart, "GAIN")
	require.Contains(t, succeed("history", id, "--json"), `"views":`)
	require.NotEmpty(t, succeed("refresh", id))
	var refreshed string
	require.Eventually(t, func() bool {
		_, refreshed, _ = call("", "refresh", id, "--json")
		return strings.Contains(refreshed, `"scheduled":false`)
	}, startTimeout, 500*time.Millisecond, "a video that was just fetched must not be fetched again")
	require.Regexp(t, `"refresh_after":"[0-9T:-]+\.[0-9]{6}\+00:00"`, refreshed, "times must have the form of the API")

	file, today := filepath.Join(t.TempDir(), "out"), time.Now().UTC().Format(time.DateOnly)
	for _, what := range []string{"videos", "accounts", "collections", "histories"} {
		require.Empty(t, succeed("export", what, "-o", file))
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		rows, err := csv.NewReader(strings.NewReader(string(data))).ReadAll()
		require.NoError(t, err)
		objects := strings.Split(strings.TrimSpace(succeed("export", what, "--format", "ndjson")), "\n")
		for _, o := range objects {
			require.True(t, json.Valid([]byte(o)), o)
		}
		lines := rows[1:]
		if what == "histories" {
			// Compare only the points of earlier days. An export can lack the point of the current day, because the collector fetches the videos
			// during the test.
			day := slices.Index(rows[0], "date")
			require.NotEqual(t, -1, day)
			lines = slices.DeleteFunc(lines, func(row []string) bool { return row[day] >= today })
			objects = slices.DeleteFunc(objects, func(o string) bool {
				var point client.ExportedPoint
				require.NoError(t, json.Unmarshal([]byte(o), &point))
				return point.Date.String() >= today
			})
		}
		require.NotEmpty(t, lines)
		require.Len(t, objects, len(lines), "the export of %s must have as many entries in NDJSON as in CSV", what)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1, "an export must leave no temporary file")
	_, _, stderr = call("", "export", "histories")
	require.Contains(t, stderr, "--updated-since 20")
	status, _, stderr = call("", "export", "histories", "--updated-since", "2026-11-27")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, `--updated-since: "2026-11-27" is not a time with a time zone, such as 2026-02-01T00:00:00Z`)
	status, _, _ = call("", "export", "videos", "--updated-since", "2026-02-01T00:00:00Z")
	require.Equal(t, 2, status)

	require.Contains(t, succeed("stop", link), "stopped")
	status, _, stderr = call("", "show", "https://youtu.be/aaaaaaaaaaw")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "code ")
}

func TestCommandLine_tracksAccountsAndChangesCollections(t *testing.T) {
	t.Parallel()
	call, succeed := newSignedInCaller(t)
	const account, video = "https://www.tiktok.com/@harbour.kitchen", "https://youtu.be/dQw4w9WgXcQ"
	require.Regexp(t, `^created  Spring  [0-9a-f-]{36}\n$`, succeed("collections", "create", "Spring", "--hashtag", "handmade"))
	var child client.CreatedCollection
	require.NoError(t, json.Unmarshal([]byte(succeed("collections", "create", "Spring week 1", "--parent", "Spring", "--json")), &child))

	require.Regexp(t, `^tracked  `+account+`  [0-9a-f-]{36}\n$`, succeed("accounts", "track", "--type", "new_only", "--collection", "Spring", account))
	require.Contains(t, succeed("accounts", "track", "--json", account), `"status":"already_tracked"`)
	status, _, stderr := call(video+"\n", "accounts", "track")
	require.Equal(t, 1, status, "the command must fail, because the link is the link of a video and not of an account")
	require.Contains(t, stderr, "not saved: 1 link")
	succeed("track", video)

	require.Equal(t, "added  1 video\nadded  1 account\n", succeed("collections", "add", child.ID.String(), video, "--account", account))
	require.Contains(t, succeed("collections", "add", "Spring", video, "--json"), `"videos_added":1`)
	require.Regexp(t, `"username":"harbour.kitchen"`, succeed("accounts", "list", "--collection", child.ID.String(), "--json"))
	require.Equal(t, "removed  1 video\nremoved  1 account\n", succeed("collections", "remove", "Spring week 1", video, "--account", account))
	require.Empty(t, succeed("accounts", "list", "--collection", child.ID.String(), "--json"))
	today := time.Now().UTC().Format(time.DateOnly)
	require.Equal(t, "added  0 videos\n", succeed("collections", "add", "Spring", video, "--counts-from", today))
	status, _, stderr = call("", "collections", "add", "Spring", video, "--counts-from", "2004-12-31")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "--counts-from is 2004-12-31; it must be a day from 2005-01-01 to today, "+today)
	for _, arguments := range [][]string{{"--counts-from", today, "--account", account}, {"--counts-from", "today"}} {
		status, _, _ = call("", append([]string{"collections", "add", "Spring", video}, arguments...)...)
		require.Equal(t, 2, status, arguments)
	}
	status, _, _ = call("", "collections", "add", "Spring")
	require.Equal(t, 2, status, "there is nothing to add")
	status, _, stderr = call("", "collections", "add", "Spring", "https://youtu.be/aaaaaaaaaaw")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "https://youtu.be/aaaaaaaaaaw: ")

	var demo client.Account
	require.NoError(t, json.Unmarshal([]byte(strings.SplitN(succeed("accounts", "list", "--order-by", "total_views", "--json"), "\n", 2)[0]), &demo))
	chart := succeed("accounts", "history", demo.AccountID.String(), "--days", "7")
	require.Contains(t, chart, "FOLLOWERS")
	require.Contains(t, chart, "█")
	require.Contains(t, succeed("accounts", "history", demo.AccountID.String(), "--metric", "views"), "VIEWS")
	require.Contains(t, succeed("accounts", "history", demo.AccountID.String(), "--json"), `"followers":`)
	require.Contains(t, succeed("accounts", "stop", account), "stopped")
	require.NotContains(t, succeed("accounts", "list", "--json"), "harbour.kitchen")
}

func TestCommandLine_commandsInTheDocumentationWork(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/command-line.md")
	require.NoError(t, err)
	u, loginFile, _ := newCaller(t)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "token.txt"), []byte(u.token), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "links.txt"), []byte("https://youtu.be/dQw4w9WgXcQ\n"), 0o600))
	commands := 0
	for line := range strings.Lines(string(document)) {
		command, isCommand := strings.CutPrefix(line, "reeltally ")
		if !isCommand {
			continue
		}
		commands++
		command = strings.ReplaceAll(command, "http://127.0.0.1:8080", u.base)
		command, input, _ := strings.Cut(command, " < ")
		args := strings.Fields(command)
		for i, arg := range args {
			if i > 0 && args[i-1] == "-o" {
				args[i] = filepath.Join(folder, arg)
			}
		}
		var stdin string
		if input != "" {
			text, err := os.ReadFile(filepath.Join(folder, strings.TrimSpace(input)))
			require.NoError(t, err)
			stdin = string(text)
		}
		p := boottest.Start(t, run, strings.NewReader(stdin), map[string]string{"REELTALLY_LOGIN_FILE": loginFile}, args...)
		if strings.HasPrefix(command, "watch ") {
			p.Stdout.Await(t, startTimeout, "views")
			p.Stop()
		}
		require.Zero(t, p.Wait(), "%s: %s", command, p.Stderr.String())
	}
	require.Greater(t, commands, 15)
}

func TestWatch_printsALineWhenACountChanges(t *testing.T) {
	t.Parallel()
	views := make(chan int, 3)
	views <- 1200
	views <- 1200
	views <- 1500
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		n := 1500
		select {
		case n = <-views:
		default:
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ad_id": "01938c32-8f07-7a46-93be-1d2c3b4a5968", "ad_link": "https://youtu.be/x\x1b[2J", "latest_views": n})
	}))
	t.Cleanup(server.Close)
	p := boottest.Start(t, run, nil, map[string]string{"REELTALLY_URL": server.URL, "REELTALLY_TOKEN": "rt_x"}, "watch", "x", "--every", "1s")
	p.Stdout.Await(t, startTimeout, "views 1,500 (+300)")
	require.Zero(t, p.Stop(), "if watch is interrupted, it must exit with status 0")
	require.Equal(t, 2, strings.Count(p.Stdout.String(), "\n"), "watch must print one line at the start, and one line after the change")
	require.NotContains(t, p.Stdout.String(), "\x1b")
	require.Regexp(t, `^[0-9-]{10} [0-9:]{8} UTC  `, p.Stdout.String())
	status, _, _ := boottest.Run(t, run, nil, nil, "watch")
	require.Equal(t, 2, status)
}

func TestTrack_sendsFiveHundredLinksInARequest(t *testing.T) {
	t.Parallel()
	var sizes []int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent client.TrackVideosRequest
		_ = json.NewDecoder(r.Body).Decode(&sent)
		sizes = append(sizes, len(sent.Links))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"success":true,"results":[],"summary":{},"warnings":[],"trackingEnqueued":true}`)
	}))
	t.Cleanup(server.Close)
	env := map[string]string{"REELTALLY_URL": server.URL, "REELTALLY_TOKEN": "rt_x"}
	status, _, stderr := boottest.Run(t, run, strings.NewReader(strings.Repeat("https://youtu.be/dQw4w9WgXcQ\n", 1100)), env, "track")
	require.Zero(t, status, stderr)
	require.Equal(t, []int{500, 500, 100}, sizes)
}

func TestChart_distinguishesGapsFromInterpolatedDays(t *testing.T) {
	t.Parallel()
	day := func(d int, views *int64, interpolated bool) chartPoint {
		return chartPoint{time.Date(2026, 2, d, 0, 0, 0, 0, time.UTC), views, interpolated}
	}
	rows := chartRows([]chartPoint{day(1, new(int64(50)), false), day(2, new(int64(75)), true), day(3, nil, false), day(6, new(int64(100)), false), day(9, new(int64(90)), false),
		day(10, new(int64(95)), false)})
	require.Equal(t, [][]string{
		{"2026-02-01", "50", "", strings.Repeat("█", 20)},
		{"2026-02-02", "75", "+25", strings.Repeat("░", 30) + " interpolated"},
		{"2026-02-03", "-", "", ""},
		{"…", "", "", "2 days without a history point"},
		{"2026-02-06", "100", "", strings.Repeat("█", 40)},
		{"…", "", "", "2 days without a history point"},
		{"2026-02-09", "90", "", strings.Repeat("█", 36)},
		{"2026-02-10", "95", "+5", strings.Repeat("█", 38)},
	}, rows, "a gain over a gap is not the gain of one day")
}

func TestTable_alignsNumbersAndShortensTheWideColumn(t *testing.T) {
	t.Parallel()
	columns := []column{{title: "TITLE", wide: true}, {title: "VIEWS", right: true}}
	rows := [][]string{{"A very long title of a video", "1,200"}, {"日本語", "7"}}
	require.Equal(t, "TITLE          VIEWS\nA very long …  1,200\n日本語             7\n", formatColumns(columns, rows, 20))
	require.Contains(t, formatColumns(columns, rows, 0), "A very long title of a video  1,200\n")
	columns = append(columns, column{title: "ID", extra: true})
	rows = [][]string{{"A very long title of a video", "1,200", "01938c33"}}
	require.Equal(t, "TITLE     VIEWS  ID\nA very …  1,200  01938c33\n", formatColumns(columns, rows, 25))
	require.Equal(t, "TITLE            VIEWS\nA very long ti…  1,200\n", formatColumns(columns, rows, 22), "the table must leave out the column that is marked as extra")
	require.Equal(t, "a b", plainText("a\n\x1b\u202eb"))
}
