package ingest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestTables_allHaveALimitOnTheirSize(t *testing.T) {
	t.Parallel()
	for name, described := range storetest.Tables {
		require.Contains(t, []storetest.TableBound{storetest.ByInstallation, storetest.ByTenantData, storetest.ByTime}, described.Bound, name)
		require.Equal(t, described.Bound == storetest.ByTime, described.Retention > 0, "table %s: Retention must be set if and only if Bound is ByTime", name)
	}
}

// insertersByTable returns one function for each table with expiring rows. Each function inserts a
// row that was last used at the time `at`.
func insertersByTable(t *testing.T, db *storetest.DB, o *store.Org, n int, at time.Time) map[string]func() {
	t.Helper()
	i, day, id := store.InstantOf(at), store.DateOf(at), store.NewID()
	video := storetest.Column[string](t, db, "SELECT CAST(id AS text) FROM videos WHERE organisation_id = ? LIMIT 1", o.ID())[0]
	account := storetest.Column[string](t, db, "SELECT CAST(id AS text) FROM accounts WHERE organisation_id = ? LIMIT 1", o.ID())[0]
	add := func(statement string, args ...any) func() { return func() { db.Exec(t, statement, args...) } }
	// Some keys contain n, so two rows of a table need different values of n.
	return map[string]func(){
		"api_tokens":    add("INSERT INTO api_tokens (id, organisation_id, name, hash, scopes, created_at, revoked_at) VALUES (?, ?, 'x', ?, 'read', 0, ?)", id, o.ID(), id[:], i),
		"token_uses":    add("INSERT INTO token_uses (token_id, last_used_at) VALUES (?, ?)", id, i),
		"sessions":      add("INSERT INTO sessions (hash, token_id, created_at, expires_at) VALUES (?, ?, 0, ?)", id[:], id, i),
		"login_links":   add("INSERT INTO login_links (hash, token_id, created_at, expires_at) VALUES (?, ?, 0, ?)", id[:], id, i),
		"quota_windows": add("INSERT INTO quota_windows (source, win, used, updated_at) VALUES ('s', ?, 1, ?)", fmt.Sprint(n), i),
		"source_pauses": add("INSERT INTO source_pauses (source, class, detail, blocked_until, strikes) VALUES (?, 'x', '', ?, 1)", fmt.Sprint(n), i),
		"org_turns":     add("INSERT INTO org_turns (route, organisation_id, turn) VALUES ('s', ?, ?)", id, i),
		"short_links":   add("INSERT INTO short_links (platform, code, target, resolved_at) VALUES ('tiktok', ?, 'x', ?)", fmt.Sprint(n), i),
		"collectors":    add("INSERT INTO collectors (id, seen_at) VALUES (?, ?)", id, i),
		"idempotency_keys": add("INSERT INTO idempotency_keys (organisation_id, operation, key, fingerprint, effect_id, created_at, started_at, bytes) VALUES (?, 'op', ?, ?, ?, ?, 0, 500)",
			o.ID(), fmt.Sprint("key", n), id[:], id, i),
		"snapshots_daily": add("INSERT INTO snapshots_daily (organisation_id, video_id, day, week, views, fetched_at, source) VALUES (?, ?, ?, ?, 1, 0, 'x')",
			o.ID(), video, day, day.Week()),
		"snapshots_weekly": add("INSERT INTO snapshots_weekly (organisation_id, video_id, day, week, views, fetched_at, source) VALUES (?, ?, ?, ?, 1, 0, 'x')",
			o.ID(), video, day, day.Week()),
		"account_days": add("INSERT INTO account_days (organisation_id, account_id, day, videos) VALUES (?, ?, ?, 1)", o.ID(), account, day),
		"events":       add("INSERT INTO events (organisation_id, position, id, type, created_at, data) VALUES (?, ?, ?, 'x', ?, '{}')", o.ID(), n, id, i),
		"webhook_deliveries": func() {
			db.Exec(t, "INSERT INTO events (organisation_id, position, id, type, created_at, data) VALUES (?, ?, ?, 'x', ?, '{}')", o.ID(), 1+n, id, i)
			db.Exec(t, `INSERT INTO webhook_deliveries (organisation_id, id, webhook_id, position, event_id, event_type, created_at, attempts, delivered)
 VALUES (?, ?, ?, ?, ?, 'x', ?, 0, false)`, o.ID(), id, id, 1+n, id, i)
		},
		"organisation_days": add("INSERT INTO organisation_days (organisation_id, day, videos, views, likes, comments, shares, bookmarks) VALUES (?, ?, 1, 1, 1, 1, 1, 1)", o.ID(), day),
	}
}

func TestRetention_deletesOldRowsOfEveryTableThatGrowsWithTime(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, "https://www.tiktok.com/@someone"))
		storetest.Track(t, o, storetest.VideoLink(t, 1))
		storetest.CreatePartitions(t, db, 900)
		now, rows := db.Clock.Now(), map[string]int64{}
		count := func(table string) int64 { return storetest.Column[int64](t, db, "SELECT COUNT(*) FROM "+table)[0] }
		for name, described := range storetest.Tables {
			if described.Bound != storetest.ByTime {
				continue
			}
			slack := min(described.Retention/2, 20*24*time.Hour)
			for n, at := range []time.Time{now.Add(-described.Retention - slack), now.Add(-described.Retention/2 + slack/4)} {
				n = 1 + 10*n // the events of an organisation have positions from 1 on, in the order of their times
				add, ok := insertersByTable(t, db, o, n, at)[name]
				require.True(t, ok, "insertersByTable must have a function for the table %s, because the Bound of the table is ByTime", name)
				add()
			}
			rows[name] = count(name)
		}
		db.Exec(t, "INSERT INTO idempotency_usage (organisation_id, bytes) VALUES (?, 1000)", o.ID())

		_, err := db.ApplyRetention(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		deleted, err := db.DeleteExpired(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		collector := store.NewID()
		for range 2 { // the first heartbeat sees the rows of other collectors, and the second one deletes them
			_, err = db.Heartbeat(t.Context(), collector, 10*time.Second, nil)
			require.NoError(t, err)
			db.Clock.Advance(11 * time.Minute)
		}
		for name, before := range rows {
			switch name {
			case "collectors": // only the row of the calling collector is left, because the other rows had no heartbeat for more than 10 minutes
				require.EqualValues(t, 1, count(name), name)
			case "events": // for each delivery, insertersByTable also inserts an event of the same age
				require.EqualValues(t, 2, count(name), name)
			case "snapshots_weekly": // the roll-up has turned the old daily point into a weekly point
				require.Equal(t, before, count(name), name)
			default:
				require.Equal(t, before-1, count(name), "%s: the old row must be deleted, and no other row", name)
			}
		}
		require.EqualValues(t, 1, deleted["api_tokens"])
		require.Equal(t, []int64{500}, storetest.Column[int64](t, db, "SELECT bytes FROM idempotency_usage"))
		again, err := db.DeleteExpired(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		for name, n := range again {
			require.Zero(t, n, name)
		}
	})
}

func TestDeleteExpired_deletesInBatchesAndContinuesAfterAnInterruption(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		old := store.InstantOf(db.Clock.Now().AddDate(0, 0, -31))
		for n := range 1201 {
			db.Exec(t, "INSERT INTO short_links (platform, code, target, resolved_at) VALUES ('tiktok', ?, 'x', ?)", fmt.Sprint(n), old)
		}
		calls := 0
		deleted, err := db.DeleteExpired(t.Context(), func() error {
			if calls++; calls == 2 {
				return queue.ErrLeaseLost
			}
			return nil
		})
		require.ErrorIs(t, err, queue.ErrLeaseLost)
		require.EqualValues(t, 1000, deleted["short_links"])
		deleted, err = db.DeleteExpired(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		require.EqualValues(t, 201, deleted["short_links"])
	})
}

func TestDeleteExpired_keepsValidTokensAndTheirTimesOfUse(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		forever, _, err := db.CreateToken(t.Context(), o.ID(), "forever", []store.Scope{store.ScopeRead}, 0)
		require.NoError(t, err)
		short, _, err := db.CreateToken(t.Context(), o.ID(), "short", []store.Scope{store.ScopeRead}, time.Hour)
		require.NoError(t, err)
		for _, id := range []uuid.UUID{forever.ID, short.ID} {
			require.NoError(t, db.SaveTokenUse(t.Context(), id, db.Clock.Now()))
		}
		names := func() []string { return storetest.Column[string](t, db, "SELECT name FROM api_tokens ORDER BY name") }
		db.Clock.Advance(time.Hour + 90*24*time.Hour)
		_, err = db.DeleteExpired(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		require.Equal(t, []string{"forever", "short"}, names())
		db.Clock.Advance(time.Second)
		_, err = db.DeleteExpired(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		require.Equal(t, []string{"forever"}, names())
		require.Equal(t, []string{forever.ID.String()}, storetest.Column[string](t, db, "SELECT CAST(token_id AS text) FROM token_uses"))
	})
}

func TestDeleteOrphans_deletesTargetsWithoutSubscriptions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		gone, stays := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		storetest.Track(t, gone, storetest.VideoLinks(t, 3)...)
		storetest.Track(t, stays, storetest.VideoLink(t, 2))
		youtube := storetest.ParseLink(t, storetest.YouTubeURL)
		storetest.Track(t, stays, youtube)
		storetest.StopVideos(t, stays, youtube)
		db.Exec(t, "DELETE FROM organisations WHERE id = ?", gone.ID())
		targets := func() []string {
			return storetest.Column[string](t, db, "SELECT external_id FROM fetch_targets ORDER BY external_id")
		}

		done, err := db.DeleteOrphans(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		require.EqualValues(t, 3, done["fetch_subscriptions"])
		require.Equal(t, []string{storetest.VideoLink(t, 2).ID, youtube.ID}, targets(), "the target of a stopped video is kept for a day, because a collector may still claim it")
		require.Equal(t, []string{stays.ID().String()}, storetest.Column[string](t, db, "SELECT CAST(organisation_id AS text) FROM fetch_subscriptions"))

		db.Clock.Advance(48 * time.Hour)
		done, err = db.DeleteOrphans(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		require.EqualValues(t, 1, done["fetch_targets"])
		require.Equal(t, []string{storetest.VideoLink(t, 2).ID}, targets())
	})
}

func TestDeleteOrphans_keepsATargetThatGetsASubscriptionDuringTheDeletion(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other, l := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL)
		storetest.Track(t, o, l)
		storetest.StopVideos(t, o, l)
		db.Clock.Advance(48 * time.Hour)
		finish := storetest.RunBeforeStatement(t, db, "DELETE FROM fetch_targets", func(s *store.Store) { storetest.Track(t, s.Org(other.ID()), l) })
		_, err := db.DeleteOrphans(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		finish()
		require.Equal(t, 1, storetest.Deliver(t, db, link.YouTube, storetest.Views(1)))
	})
}
