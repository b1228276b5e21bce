package collector_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// stateQueries return the stored counts and the data derived from them, as one text per row. They
// leave out data that differs between runs.
var stateQueries = map[string]string{
	// The query also removes two details that differ between runs. These are the number of failed attempts in the fetch reason, and the milliseconds
	// of the length, which some methods of YouTube do not return.
	"videos": `SELECT o.name || ' ' || v.platform || ' ' || v.external_id || ' ' || (to_jsonb(v) - 'organisation_id' - 'id' - 'linked_account_id' - 'created_at' - 'latest_updated_at' - 'last_attempt_at' - 'next_fetch_at' - 'video_length' - 'fetch_reason')
  || ' ' || regexp_replace(COALESCE(v.fetch_reason, ''), ' [0-9]+ attempts', ' attempts') || ' ' || COALESCE(floor(CAST(v.video_length AS numeric)), -1) || ' ' || COALESCE(v.latest_updated_at / 86400000000, 0) || ' ' || COALESCE(a.external_id, a.username, '') FROM videos v JOIN organisations o ON o.id = v.organisation_id
  LEFT JOIN accounts a ON a.organisation_id = v.organisation_id AND a.id = v.linked_account_id`,
	"points": `SELECT o.name || ' ' || v.platform || ' ' || v.external_id || ' ' || (to_jsonb(d) - 'organisation_id' - 'video_id' - 'fetched_at')
  FROM snapshots_daily d JOIN videos v ON v.organisation_id = d.organisation_id AND v.id = d.video_id JOIN organisations o ON o.id = d.organisation_id`,
	"weekly points": `SELECT o.name || ' ' || v.platform || ' ' || v.external_id || ' ' || (to_jsonb(d) - 'organisation_id' - 'video_id' - 'fetched_at')
  FROM snapshots_weekly d JOIN videos v ON v.organisation_id = d.organisation_id AND v.id = d.video_id JOIN organisations o ON o.id = d.organisation_id`,
	"accounts": `SELECT o.name || ' ' || a.platform || ' ' || (to_jsonb(a) - 'organisation_id' - 'id' - 'created_at' - 'checked_at' - 'last_attempt_at' - 'next_fetch_at' - 'fetch_reason')
  || ' ' || regexp_replace(COALESCE(a.fetch_reason, ''), ' [0-9]+ attempts', ' attempts') FROM accounts a JOIN organisations o ON o.id = a.organisation_id`,
	// A killed collector can leave an additional row with unchanged sums. So rows with the same sums as the day
	// before are not compared.
	"account days": `SELECT o.name || ' ' || a.platform || ' ' || a.username || ' ' || d.day || ' ' || d.sums FROM (SELECT organisation_id, account_id, day, sums,
    LAG(sums) OVER (PARTITION BY organisation_id, account_id ORDER BY day) AS before
    FROM (SELECT *, to_jsonb(account_days) - 'organisation_id' - 'account_id' - 'day' - 'fetched_at' - 'source' AS sums FROM account_days) AS all_days) d
  JOIN accounts a ON a.organisation_id = d.organisation_id AND a.id = d.account_id JOIN organisations o ON o.id = d.organisation_id
  WHERE d.sums IS DISTINCT FROM d.before`,
	"organisation totals": `SELECT o.name || ' ' || (to_jsonb(t) - 'organisation_id' - 'version') FROM organisation_totals t JOIN organisations o ON o.id = t.organisation_id`,
	"organisation days": `SELECT o.name || ' ' || d.day || ' ' || d.sums FROM (SELECT organisation_id, day, sums, LAG(sums) OVER (PARTITION BY organisation_id ORDER BY day) AS before
    FROM (SELECT *, to_jsonb(organisation_days) - 'organisation_id' - 'day' AS sums FROM organisation_days) AS all_days) d
  JOIN organisations o ON o.id = d.organisation_id WHERE d.sums IS DISTINCT FROM d.before`,
	"organisation uploads": `SELECT o.name || ' ' || (to_jsonb(u) - 'organisation_id') FROM organisation_uploads u JOIN organisations o ON o.id = u.organisation_id`,
	"hashtags": `SELECT o.name || ' ' || v.external_id || ' ' || h.tag
  FROM video_hashtags h JOIN videos v ON v.organisation_id = h.organisation_id AND v.id = h.video_id JOIN organisations o ON o.id = h.organisation_id`,
	"targets":       `SELECT source || ' ' || kind || ' ' || external_id || ' ' || state || ' ' || COALESCE(views, -1) || ' ' || COALESCE(suspect, '') FROM fetch_targets`,
	"subscriptions": `SELECT o.name || ' ' || s.source || ' ' || s.external_id FROM fetch_subscriptions s JOIN organisations o ON o.id = s.organisation_id`,
}

// readState runs all stateQueries and returns a map from the name of each query to its sorted rows.
func readState(t *testing.T, db *storetest.DB) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for name, query := range stateQueries {
		rows := storetest.Column[string](t, db, query)
		slices.Sort(rows)
		all[name] = rows
	}
	return all
}

// requireTruePoints checks the counts of all daily points and returns the number of points. A video
// that was always public needs a point each day.
func (k *killTest) requireTruePoints() (points int) {
	k.t.Helper()
	type videoKey struct {
		org      uuid.UUID
		platform link.Platform
		id       string
		at       store.Date
	}
	rows, err := k.db.Raw(k.t).QueryContext(k.t.Context(), `SELECT d.organisation_id, v.platform, v.external_id, d.day, d.views, d.likes, d.comments, v.created_at
  FROM snapshots_daily d JOIN videos v ON v.organisation_id = d.organisation_id AND v.id = d.video_id`)
	require.NoError(k.t, err)
	defer func() { require.NoError(k.t, rows.Close()) }()
	days := map[videoKey]int{}
	platforms := k.box.World()
	last := store.DateOf(k.clock.Now()) - 1
	for rows.Next() {
		var s videoKey
		var day time.Time
		var created store.Instant
		var views, likes, comments *int64
		require.NoError(k.t, rows.Scan(&s.org, &s.platform, &s.id, &day, &views, &likes, &comments, &created))
		correct, ok := platforms.Video(s.platform, s.id, day)
		require.True(k.t, ok)
		require.Contains(k.t, []sandbox.State{sandbox.Public, sandbox.Restricted}, correct.State, "video %s must have no counts on %s, because it was not visible", s.id, day)
		for name, pair := range map[string][2]*int64{"views": {views, &correct.Counts.Views}, "likes": {likes, correct.Counts.Likes}, "comments": {comments, correct.Counts.Comments}} {
			if pair[0] != nil {
				require.NotNil(k.t, pair[1], "the %s of video %s on %s must be correct", name, s.id, day)
				require.Equal(k.t, *pair[1], *pair[0], "the %s of video %s on %s must be correct", name, s.id, day)
			}
		}
		s.at = max(created.Day(), last-storetest.DailyDays+1)
		if store.DateOf(day) >= s.at {
			days[s]++
		}
		points++
	}
	require.NoError(k.t, rows.Err())
	for s, n := range days {
		always := true
		for day := s.at; day <= last; day++ {
			correct, _ := platforms.Video(s.platform, s.id, day.Time())
			always = always && correct.State == sandbox.Public
		}
		if always {
			require.Equal(k.t, int(last-s.at)+1, n, "video %s of organisation %s must have a point for each day", s.id, s.org)
		}
	}
	return points
}

// reclaimedTargets reads from the logs how many targets of dead collectors were freed for other collectors.
func (k *killTest) reclaimedTargets() (targets int) {
	k.t.Helper()
	file, err := os.Open(k.log.Name())
	require.NoError(k.t, err)
	defer func() { require.NoError(k.t, file.Close()) }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Msg     string
			Targets int
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "freed the targets of a dead collector" {
			targets += line.Targets
		}
		require.NotContains(k.t, lines.Text(), "panic")
	}
	require.NoError(k.t, lines.Err())
	return targets
}

func TestKilledCollectors_storeTheSamePointsAsAnUndisturbedCollector(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	undisturbed := newKillTest(t, "undisturbed", 1)
	disturbed := newKillTest(t, "disturbed", 3)
	t.Run("runs", func(t *testing.T) {
		t.Run("undisturbed", func(t *testing.T) {
			t.Parallel()
			undisturbed.runDays(t, *killedVideos, *killedDays, 0, 0)
		})
		t.Run("disturbed", func(t *testing.T) {
			t.Parallel()
			disturbed.runDays(t, *killedVideos, *killedDays, *killedKills, *killedCrashes)
		})
	})
	if t.Failed() {
		return
	}
	require.Equal(t, undisturbed.requireTruePoints(), disturbed.requireTruePoints())
	require.Equal(t, *killedKills, disturbed.killed)
	require.Equal(t, *killedCrashes, disturbed.crashed)
	reclaimed := disturbed.reclaimedTargets()
	require.Positive(t, reclaimed, "at least one of the killed collectors must have held a claim")

	want, got := readState(t, undisturbed.db), readState(t, disturbed.db)
	var report strings.Builder
	fmt.Fprintf(&report, "%d videos, %d days, %d organisations; %d kills of one of three collectors, %d database crashes; %d targets reclaimed from dead collectors, %d collectors exited without being killed\n",
		*killedVideos, *killedDays, *simulatedOrgs, disturbed.killed, disturbed.crashed, reclaimed, disturbed.exited)
	fmt.Fprintf(&report, "calls undisturbed: %v; disturbed: %v\n", undisturbed.totalUsedUnits(), disturbed.totalUsedUnits())
	for _, name := range slices.Sorted(maps.Keys(want)) {
		rows := want[name]
		missing, extra := rowsNotIn(rows, got[name]), rowsNotIn(got[name], rows)
		fmt.Fprintf(&report, "%s: %d rows, %d differ\n", name, len(rows), max(len(missing), len(extra)))
		for i := range min(5, max(len(missing), len(extra))) {
			t.Logf("%s:\n row without faults: %v;\n row with faults:    %v", name, rowAt(missing, i), rowAt(extra, i))
		}
	}
	t.Log(report.String())
	if *killedOut != "" {
		require.NoError(t, os.WriteFile(*killedOut, []byte(report.String()), 0o644))
	}
	require.Len(t, got, len(want))
	for name := range want {
		// PostgreSQL rolls up only complete months, so a short test has no weekly points.
		if name != "weekly points" || *killedDays > storetest.DailyDays+31 {
			require.NotEmpty(t, want[name], name)
		}
		require.Empty(t, rowsNotIn(want[name], got[name]), name)
		require.Empty(t, rowsNotIn(got[name], want[name]), name)
	}
}

// rowsNotIn returns the rows that are not excluded. Both slices must be sorted.
func rowsNotIn(rows, excluded []string) []string {
	var left []string
	for _, r := range rows {
		if _, found := slices.BinarySearch(excluded, r); !found {
			left = append(left, r)
		}
	}
	return left
}

func rowAt(rows []string, i int) string {
	if i < len(rows) {
		return rows[i]
	}
	return "nothing"
}
