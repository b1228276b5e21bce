package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/cmd/internal/monitor"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// startSandbox starts a sandbox and returns its address. It also returns settings for the given database URL. With these settings, the sandbox is the
// source of every platform.
func startSandbox(t *testing.T, url string) (settings map[string]string, address string) {
	t.Helper()
	box := newSandbox(0, slog.New(slog.DiscardHandler))
	server := httptest.NewServer(box.Handler())
	t.Cleanup(server.Close)
	settings = box.Settings(server.URL)
	settings["REELTALLY_DATABASE_URL"] = url
	return settings, server.URL
}

// sandboxSources are the names of the sources that the settings of startSandbox configure.
var sandboxSources = []string{"youtube", "tiktok_display", "instagram", "facebook", "vendor:sandbox"}

// runDoctor runs `reeltally doctor`. It returns the exit status, and a map from the names of the checks to their findings.
func runDoctor(t *testing.T, settings map[string]string) (status int, found map[string]finding) {
	t.Helper()
	status, stdout, _ := boottest.Run(t, run, nil, settings, "doctor", "--json")
	var list []finding
	require.NoError(t, json.Unmarshal([]byte(stdout), &list))
	found = map[string]finding{}
	for _, f := range list {
		found[f.Check] = f
		require.Equal(t, f.State == stateOK, f.Advice == "", "a finding must have advice if its state is not ok, and no advice if its state is ok: %v", f)
	}
	return status, found
}

func statesByCheck(found map[string]finding) map[string]string {
	out := map[string]string{}
	for name, f := range found {
		out[name] = f.State
	}
	return out
}

func TestDoctor_findsNoProblemInHealthyInstallation(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t, engine)
			settings, _ := startSandbox(t, db.URL)
			_, err := db.CreateOrganisation(t.Context(), "Northwind", store.TierPremium, store.SubscriptionActive)
			require.NoError(t, err)
			status, found := runDoctor(t, settings)
			require.Zero(t, status)
			want := map[string]string{"database": stateOK, "schema": stateOK, "collectors": stateWarning, "queue": stateOK, "organisations": stateOK, "retention": stateOK, "backup": stateOK}
			delete(found, "durability") // the PostgreSQL server of the tests can have fsync = off
			for _, s := range sandboxSources {
				want["source "+s], want["reach "+s], want["clock of the source "+s] = stateOK, stateOK, stateOK
			}
			if engine == "sqlite" {
				want["disk"], want["file mode"] = stateOK, stateOK
			} else {
				want["clock of the database"] = stateOK
			}
			require.Equal(t, want, statesByCheck(found))
			require.Contains(t, found["collectors"].Advice, "Start a collector")

			_, stdout, _ := boottest.Run(t, run, nil, settings, "doctor")
			require.Regexp(t, `(?m)^ok +database +`+engine+` \d`, stdout)
			require.Regexp(t, `(?m)^warning +collectors +no collector is running\n +→ Start a collector`, stdout)
		})
	}
}

func TestDoctor_reportsEachProblem(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	settings, _ := startSandbox(t, db.URL)
	t.Run("wrong credential", func(t *testing.T) {
		t.Parallel()
		wrong := map[string]string{}
		maps.Copy(wrong, settings)
		wrong["REELTALLY_YOUTUBE_API_KEY"] = "mistyped"
		status, found := runDoctor(t, wrong)
		require.Equal(t, 1, status)
		require.Equal(t, stateBroken, found["source youtube"].State)
		require.Contains(t, found["source youtube"].Found, "auth_failed")
		require.NotContains(t, found["source youtube"].Found, "mistyped")
		require.Equal(t, stateOK, found["source vendor:sandbox"].State, "doctor must check the other sources too")
	})
	t.Run("unreachable source", func(t *testing.T) {
		t.Parallel()
		status, found := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": db.URL, "REELTALLY_YOUTUBE_API_KEY": "k", "REELTALLY_YOUTUBE_BASE_URL": "http://127.0.0.1:1/"})
		require.Equal(t, 1, status)
		require.Equal(t, stateBroken, found["reach youtube"].State)
		require.Equal(t, stateBroken, found["source youtube"].State)
	})
	t.Run("source with a wrong clock", func(t *testing.T) {
		t.Parallel()
		oldDate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", "Mon, 02 Jan 2006 15:04:05 GMT")
			w.WriteHeader(http.StatusNotFound)
		}))
		t.Cleanup(oldDate.Close)
		status, found := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": db.URL, "REELTALLY_YOUTUBE_API_KEY": "k", "REELTALLY_YOUTUBE_BASE_URL": oldDate.URL})
		require.Equal(t, 1, status)
		require.Equal(t, stateBroken, found["clock of the source youtube"].State)
		require.Contains(t, found["clock of the source youtube"].Advice, "NTP")
	})
	t.Run("missing schema", func(t *testing.T) {
		t.Parallel()
		url := storetest.CreateEmptyDatabase(t, "sqlite")
		require.NoError(t, os.WriteFile(strings.TrimPrefix(url, "sqlite:"), nil, 0o600)) // for SQLite, an empty file is a database without tables
		status, found := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": url})
		require.Equal(t, 1, status)
		require.Contains(t, found["schema"].Advice, "reeltally migrate")
	})
	t.Run("file readable by other users", func(t *testing.T) {
		t.Parallel()
		open := storetest.New(t, "sqlite")
		require.NoError(t, os.Chmod(strings.TrimPrefix(open.URL, "sqlite:"), 0o644))
		status, found := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": open.URL})
		require.Zero(t, status)
		require.Equal(t, stateWarning, found["file mode"].State)
		require.Contains(t, found["file mode"].Found, "mode 0644")
		require.Contains(t, found["file mode"].Advice, "chmod 600")
	})
	t.Run("clock of this machine jumped", func(t *testing.T) {
		t.Parallel()
		jumped := storetest.New(t, "sqlite")
		jumped.Exec(t, "INSERT INTO clock_state (name, steady_since, seen_at) VALUES ('retention', 0, ?)", store.InstantOf(time.Now().AddDate(-1, 0, 0)))
		status, found := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": jumped.URL})
		require.Zero(t, status)
		require.Equal(t, stateWarning, found["retention"].State)
		require.Regexp(t, "^the clock of this machine says .* and may have jumped at", found["retention"].Found)
	})
	t.Run("unreachable database", func(t *testing.T) {
		t.Parallel()
		status, found := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": "postgres://me:s3cret@127.0.0.1:1/none"})
		require.Equal(t, 1, status)
		require.Equal(t, stateBroken, found["database"].State)
		require.NotContains(t, found["database"].Found, "s3cret")
	})
	t.Run("invalid setting", func(t *testing.T) {
		t.Parallel()
		status, found := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": db.URL, "REELTALLY_VENDOR_KEY": "s3cret"})
		require.Equal(t, 1, status)
		require.Contains(t, found["sources"].Found, "REELTALLY_VENDOR_KEY is set but REELTALLY_VENDOR is not")
	})
	t.Run("token without permissions", func(t *testing.T) {
		t.Parallel()
		fresh := storetest.New(t, "sqlite")
		meta := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"message":"(#10) This endpoint requires the 'pages_read_engagement' permission","code":10}}`))
		}))
		t.Cleanup(meta.Close)
		settings := map[string]string{"REELTALLY_DATABASE_URL": fresh.URL, "REELTALLY_FACEBOOK_ACCESS_TOKEN": "s3cret", "REELTALLY_FACEBOOK_BASE_URL": meta.URL + "/v25.0/"}
		status, found := runDoctor(t, settings)
		require.Zero(t, status, "while no target is tracked, a missing permission must cause a warning and not a failure")
		require.Equal(t, stateWarning, found["source facebook"].State)
		require.Contains(t, found["source facebook"].Found, "pages_read_engagement")
		require.Contains(t, found["source facebook"].Advice, "docs/sources.md")
		settings["REELTALLY_FACEBOOK_PAGE_ID"] = "100064550044307"
		status, found = runDoctor(t, settings)
		require.Equal(t, 1, status, "doctor must fail if the token cannot read the page in REELTALLY_FACEBOOK_PAGE_ID")
		require.Equal(t, stateBroken, found["source facebook"].State)
	})
	t.Run("no source configured", func(t *testing.T) {
		t.Parallel()
		status, found := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": db.URL})
		require.Zero(t, status)
		require.Equal(t, stateWarning, found["sources"].State)
		require.Contains(t, found["sources"].Advice, "docs/sources.md")
	})
	t.Run("no source configured for a database of the sandbox", func(t *testing.T) {
		t.Parallel()
		demo := storetest.New(t, "sqlite")
		demo.Exec(t, "INSERT INTO settings (name, value) VALUES ('data_kind', ?)", []byte(store.MadeUpData))
		status, found := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": demo.URL})
		require.Zero(t, status)
		require.Equal(t, finding{"sources", stateOK, "the numbers are made up by the sandbox, which needs no credential", ""}, found["sources"])
	})
	t.Run("spent quota", func(t *testing.T) {
		t.Parallel()
		fresh := storetest.New(t, "sqlite")
		settings, sandboxURL := startSandbox(t, fresh.URL)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, sandboxURL+"/_control/faults", strings.NewReader(`{"source":"youtube","fault":"quota_spent","count":1}`))
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		status, found := runDoctor(t, settings)
		require.Zero(t, status)
		require.Equal(t, stateWarning, found["source youtube"].State)
	})
}

func TestDoctor_warnsIfPostgreSQLCanLoseAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	separator := "?"
	if strings.Contains(db.URL, "?") {
		separator = "&"
	}
	// The tests can run on a server with fsync = off, so only synchronous_commit is compared.
	_, safe := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": db.URL + separator + "synchronous_commit=on"})
	require.NotContains(t, safe["durability"].Found, "synchronous_commit")
	_, unsafe := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": db.URL + separator + "synchronous_commit=off"})
	require.Equal(t, stateWarning, unsafe["durability"].State)
	require.Contains(t, unsafe["durability"].Found, "off in PostgreSQL: synchronous_commit")
}

// A platform can have no recent numbers although no target is due. `reeltally doctor` must report such a platform.
func TestDoctor_reportsPlatformsWithoutRecentNumbers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		now := store.InstantOf(time.Now())
		hoursAgo := func(h int) *store.Instant { return new(now.Add(-time.Duration(h) * time.Hour)) }
		add := func(platform, state string, attempts, n int, fetched *store.Instant, detail string) {
			for i := range n {
				db.Exec(t, `INSERT INTO fetch_targets (bucket, source, kind, external_id, handle, link, lane, base_lane, next_at, requested_at, attempts, state, detail, fetched_at)
 VALUES (0, ?, 'video', ?, '', '', 1, 1, ?, ?, ?, ?, ?, ?)`, platform, fmt.Sprint(state, attempts, fetched == nil, i), now.Add(time.Hour), hoursAgo(48), attempts, state, detail, fetched)
			}
		}
		add("facebook", "parked", 0, 3, nil, "HTTP 400, code 10/0: permission")
		add("instagram", "active", 2, 2, hoursAgo(50), "a number of the wrong type")
		add("instagram", "active", 0, 8, hoursAgo(5), "")
		add("tiktok", "active", 0, 9, hoursAgo(200), "")
		add("youtube", "active", 0, 30, hoursAgo(5), "")
		add("youtube", "parked", 4, 1, hoursAgo(500), "private")
		add("youtube", "gone", 3, 9, hoursAgo(5), "left out")

		status, found := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": db.URL})
		require.Equal(t, 1, status)
		require.Equal(t, finding{"numbers of facebook", stateBroken, "no target fetched within 36h; of 3 targets, 3 parked (fetched only once a day or once a week); 3 requested more than 36h ago and never fetched; an example: HTTP 400, code 10/0: permission",
			found["numbers of facebook"].Advice}, found["numbers of facebook"])
		require.Equal(t, finding{"numbers of instagram", stateWarning, "of 10 targets, 2 failed at the last fetch; 2 with numbers older than 48h; an example: a number of the wrong type",
			found["numbers of instagram"].Advice}, found["numbers of instagram"])
		require.Equal(t, stateBroken, found["numbers of tiktok"].State)
		require.Contains(t, found["numbers of tiktok"].Found, "9 with numbers older than 48h")
		require.Equal(t, finding{"numbers of youtube", stateOK, "30 of 31 targets fetched within 36h", ""}, found["numbers of youtube"], "a few failing targets must not cause a warning")
		require.Equal(t, "nothing is due", found["queue"].Found)

		_, stdout, _ := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": db.URL}, "status")
		require.Regexp(t, `tiktok +video +9 +0 +> 168h0m0s +> 168h0m0s +> 168h0m0s`, stdout)
		require.NotRegexp(t, `facebook +video +\d+ +\d+ +>`, stdout, "the age of targets that were never fetched must not be shown")
	})
}

// A new target is due immediately. If all targets of a platform are due and none was fetched, `reeltally doctor` must warn.
func TestDoctor_warnsIfNoDueTargetWasFetched(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		now := store.InstantOf(time.Now())
		add := func(platform, state string, n int, nextAt store.Instant, fetched *store.Instant) {
			for i := range n {
				db.Exec(t, `INSERT INTO fetch_targets (bucket, source, kind, external_id, handle, link, lane, base_lane, next_at, requested_at, attempts, state, detail, fetched_at)
 VALUES (0, ?, 'video', ?, '', '', 1, 1, ?, ?, 0, ?, '', ?)`, platform, fmt.Sprint(state, nextAt, i), nextAt, now.Add(-time.Minute), state, fetched)
			}
		}
		add("facebook", "active", 1, now.Add(-time.Minute), nil)
		add("facebook", "active", 1, now.Add(time.Hour), nil)
		add("instagram", "active", 1, now.Add(time.Hour), nil)
		add("instagram", "gone", 1, now.Add(-time.Hour), nil)
		add("youtube", "active", 1, now.Add(-time.Minute), nil)
		add("youtube", "active", 1025, now.Add(time.Hour), &now)

		_, found := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": db.URL})
		require.Equal(t, finding{"numbers of facebook", stateWarning, "no target fetched within 36h; of 2 targets, 1 due", found["numbers of facebook"].Advice}, found["numbers of facebook"])
		require.Equal(t, finding{"numbers of instagram", stateOK, "0 of 1 target fetched within 36h", ""}, found["numbers of instagram"], "a target that is not due must not cause a warning")
		require.Equal(t, finding{"numbers of youtube", stateOK, "1,025 of 1,026 targets fetched within 36h", ""}, found["numbers of youtube"])
	})
}

func TestStatus_printsTablesAndJSON(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	settings, _ := startSandbox(t, db.URL)
	status, _, stderr := boottest.Run(t, run, nil, settings, "seed", "--orgs", "1", "--videos", "20", "--days", "3")
	require.Zero(t, status, stderr)
	_, stdout, stderr := boottest.Run(t, run, nil, settings, "status")
	require.Empty(t, stderr)
	require.Contains(t, stdout, "Running collectors: 0")
	require.Regexp(t, `tiktok +video +premium +\d+ +0 +0 +0 `, stdout)
	require.Regexp(t, `youtube +common +0 +10000 +\d{4}-`, stdout)
	status, stdout, _ = boottest.Run(t, run, nil, settings, "status", "--json")
	require.Zero(t, status)
	var s monitor.Status
	require.NoError(t, json.Unmarshal([]byte(stdout), &s))
	require.NotEmpty(t, s.Queue)
	require.Len(t, s.Sources, len(sandboxSources))
	status, stdout, stderr = boottest.Run(t, run, nil, settings, "status", "--list", "ok", "--json")
	require.Zero(t, status, stderr)
	require.Regexp(t, `"fetched_at":"[0-9T:-]+\.[0-9]{6}\+00:00","next_at":"[0-9T:-]+\.[0-9]{6}\+00:00"`, stdout, "times must have the form of the API")
}

func TestStatus_printsFailuresAndUnknownParts(t *testing.T) {
	t.Parallel()
	since, until := time.Date(2026, 2, 1, 1, 12, 0, 0, time.UTC), time.Date(2026, 2, 1, 4, 10, 0, 0, time.UTC)
	s := monitor.Status{Platforms: []monitor.Platform{{Platform: "tiktok", Backlog: "8 fetches are late."}}, Unknown: []monitor.UnknownPart{{Part: "last_backup", Reason: "no answer"}},
		Webhooks: &monitor.WebhookStatus{Enabled: 5, Organisations: 2, Unreachable: 3, UnreachableOrganisations: 1, DelaySeconds: 60},
		Sources:  []monitor.SourceStatus{{Source: "youtube", Pause: &monitor.PauseStatus{Until: until, Class: "auth_failed", Detail: "refused", InARow: 4, Since: &since}}}}
	var text strings.Builder
	require.NoError(t, writeStatus(&text, s))
	require.Contains(t, text.String(), "2026-02-01 04:10:00 UTC (failing since 2026-02-01 01:12:00 UTC, auth_failed: refused)")
	require.True(t, strings.HasSuffix(text.String(), `
Enabled webhooks: 5 (organisations: 2), without a response: 3 (organisations: 1), longest delay by servers: 1m0s
Unknown: last_backup, because it could not be read: no answer

tiktok: 8 fetches are late.
`), text.String())
}

func TestOrgUsage_listsTheOrganisationWithTheMostTargetsFirst(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		operator := newCommandRunner(t, db.URL)
		for i, name := range []string{"Small", "Large", "Empty"} {
			org, err := db.CreateOrganisation(t.Context(), name, store.TierPremium, store.SubscriptionActive)
			require.NoError(t, err)
			if i < 2 {
				storetest.Track(t, db.Org(org.ID), []link.Link{storetest.VideoLink(t, 1), storetest.VideoLink(t, 2), storetest.VideoLink(t, 3)}[:1+2*i]...)
			}
		}
		// The command compares these times with the clock of the machine, not with the clock of the test.
		db.Exec(t, "UPDATE fetch_targets SET route = 'vendor:a', next_at = ?", store.InstantOf(time.Now().Add(-time.Hour)))
		db.Exec(t, "UPDATE fetch_targets SET lane = 1 WHERE external_id = ?", storetest.VideoLink(t, 2).ID)
		db.Exec(t, "UPDATE fetch_targets SET next_at = ?, route = 'vendor:b' WHERE external_id = ?", store.InstantOf(time.Now().Add(time.Hour)), storetest.VideoLink(t, 3).ID)
		var got []orgUsage
		require.NoError(t, json.Unmarshal([]byte(operator("org", "usage", "--json")), &got))
		for i := range got {
			got[i].ID = uuid.Nil
		}
		require.Equal(t, []orgUsage{
			{Name: "Large", Tier: "premium", Targets: 3, Due: 2, Waiting: 1, Sources: map[string]int64{"vendor:a": 2, "vendor:b": 1}},
			{Name: "Small", Tier: "premium", Targets: 1, Due: 1, Waiting: 1, Sources: map[string]int64{"vendor:a": 1}},
			{Name: "Empty", Tier: "premium", Sources: map[string]int64{}},
		}, got)
		table := operator("org", "usage")
		require.Regexp(t, `(?m)^Large +[0-9a-f-]{36} +premium +3 +2 +1 +vendor:a: 2, vendor:b: 1$`, table)
		require.Regexp(t, `(?m)^Empty +[0-9a-f-]{36} +premium +0 +0 +0 +-$`, table)
	})
}

func TestDoctor_failsIfTheDatabaseIsNotWritable(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for _, c := range []struct {
		free          uint64
		err           error
		state, wanted string
	}{
		{2 * gib, nil, stateOK, ""},
		{gib / 2, nil, stateWarning, "Free some disk space"},
		{0, syscall.ENOSPC, stateBroken, "Free some disk space"},
		{2 * gib, syscall.EIO, stateBroken, "Check the folder"},
		{2 * gib, syscall.EACCES, stateBroken, "write to this folder"},
		{2 * gib, syscall.EROFS, stateBroken, "write to this folder"},
	} {
		f := diskFinding("folder", c.free, c.err)
		require.Equal(t, c.state, f.State)
		require.Contains(t, f.Advice, c.wanted)
		require.Contains(t, f.Found, "folder")
	}
	database := storetest.New(t, "sqlite")
	path := strings.TrimPrefix(database.URL, "sqlite:")
	require.Empty(t, checkWritable(path))
	broken := path + "-other"
	require.NoError(t, os.Mkdir(broken, 0o700)) // a folder cannot be written as a file, not even by root
	findings := checkWritable(broken)
	require.Len(t, findings, 1)
	require.Equal(t, stateBroken, findings[0].State)
	require.Contains(t, findings[0].Found, broken+" is not writable")
}

func TestDoctor_checksTheDiskIfTheDatabaseCannotBeOpened(t *testing.T) {
	t.Parallel()
	status, found := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": "sqlite:" + t.TempDir()})
	require.Equal(t, 1, status)
	require.Equal(t, stateBroken, found["database"].State)
	require.Equal(t, stateBroken, found["file access"].State)
}
