package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func dueLanes(t *testing.T, db *storetest.DB, p link.Platform) []queue.Lane {
	t.Helper()
	lanes, err := db.DueLanes(t.Context(), p, "video")
	require.NoError(t, err)
	return lanes
}

// wish tracks a link in a lane, to be fetched at its slot.
func wish(t *testing.T, o *store.Org, lane queue.Lane, links ...link.Link) {
	t.Helper()
	_, err := o.Track(t.Context(), store.TrackRequest{Links: links, Lane: lane, Enqueue: len(links)})
	require.NoError(t, err)
}

func TestLanes_areServedApart(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		require.Empty(t, dueLanes(t, db, link.TikTok))
		wish(t, o, queue.LaneFree, storetest.Clip(t, 1))
		wish(t, o, queue.LaneBasic, storetest.Clip(t, 2))
		wish(t, o, queue.LanePremium, storetest.Clip(t, 3))
		require.Empty(t, dueLanes(t, db, link.TikTok), "their slots have not come")
		storetest.Track(t, o, storetest.Clip(t, 4))
		require.Equal(t, []queue.Lane{queue.LaneInteractive}, dueLanes(t, db, link.TikTok))
		db.Clock.Advance(24 * time.Hour)
		require.Equal(t, queue.Lanes, dueLanes(t, db, link.TikTok), "the first to be served first")
		require.Empty(t, dueLanes(t, db, link.YouTube))

		for i, lane := range queue.Lanes {
			c, err := db.Claim(t.Context(), queue.ClaimRequest{Collector: store.NewID(), Platform: link.TikTok, Kind: "video", Lanes: []queue.Lane{lane}, Limit: 10, Lease: time.Minute})
			require.NoError(t, err)
			require.Equal(t, []string{storetest.Clip(t, 4-i).ID}, storetest.TargetIDs(c))
			require.Equal(t, lane, c.Targets[0].Lane)
		}
		require.Empty(t, dueLanes(t, db, link.TikTok), "all are held")
	})
}

func TestLaneOf_followsSubscriptionAndTier(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tier store.Tier
		sub  store.Subscription
		want queue.Lane
	}{
		{store.TierPremium, store.SubscriptionActive, queue.LanePremium},
		{store.TierBasic, store.SubscriptionActive, queue.LaneBasic},
		{store.TierLimited, store.SubscriptionActive, queue.LaneBasic},
		{store.TierPremium, store.SubscriptionNone, queue.LaneFree},
		{store.TierBasic, store.SubscriptionNone, queue.LaneFree},
	} {
		require.Equal(t, c.want, store.LaneOf(store.Organisation{Tier: c.tier, Subscription: c.sub}), "%s %s", c.tier, c.sub)
	}
}

func TestTarget_takesTheBestLaneOfThoseWhoAsk(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		free, premium, basic, l := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.Clip(t, 1)
		wish(t, free, queue.LaneFree, l)
		wish(t, premium, queue.LanePremium, l)
		wish(t, basic, queue.LaneBasic, l)
		db.Clock.Advance(24 * time.Hour)
		require.Equal(t, []queue.Lane{queue.LanePremium}, dueLanes(t, db, link.TikTok))
	})
}

func TestTarget_leavesTheInteractiveLaneWhenNobodyWaitsAnyMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*ingest.Outcome)
		want   queue.Lane
	}{
		"it was fetched":                    {func(*ingest.Outcome) {}, queue.LanePremium},
		"it failed and is tried again soon": {func(o *ingest.Outcome) { o.Facts, o.NextAt = nil, o.NextAt.Add(-24*time.Hour+4*time.Minute) }, queue.LaneInteractive},
		"it failed for long":                {func(o *ingest.Outcome) { o.Facts = nil }, queue.LanePremium},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				storetest.Track(t, storetest.NewOrg(t, db), storetest.Clip(t, 1))
				held := storetest.ClaimOne(t, db, link.TikTok, "video")
				o := storetest.Outcome(db, held.Targets[0], storetest.Views(1))
				c.change(&o)
				require.NoError(t, db.Acknowledge(t.Context(), held, held.At, []ingest.Outcome{o}))
				db.Clock.Set(o.NextAt.Time().Add(-time.Microsecond))
				require.Empty(t, dueLanes(t, db, link.TikTok))
				db.Clock.Set(o.NextAt.Time())
				require.Equal(t, []queue.Lane{c.want}, dueLanes(t, db, link.TikTok))
			})
		})
	}
}

func TestTarget_isNeverPutOffByAnotherWish(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first, second, l := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.Clip(t, 1)
		storetest.Track(t, first, l)
		wish(t, second, queue.LaneFree, l)
		require.Equal(t, []queue.Lane{queue.LaneInteractive}, dueLanes(t, db, link.TikTok))
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(3)))
		require.EqualValues(t, 3, *storetest.VideoOf(t, second, l).LatestViews, "one fetch serves both")

		third := storetest.NewOrg(t, db)
		require.Empty(t, dueLanes(t, db, link.TikTok))
		storetest.Track(t, third, l)
		require.Equal(t, []queue.Lane{queue.LaneInteractive}, dueLanes(t, db, link.TikTok), "but a more urgent one moves it forward")
	})
}

func TestTarget_thatWasGivenUpIsTakenUpWhenSomebodyAsks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.Track(t, storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.Short))
		c := storetest.ClaimOne(t, db, link.YouTube, "video")
		o := storetest.Outcome(db, c.Targets[0], ingest.VideoFacts{})
		o.Facts, o.State, o.Attempts, o.Detail, o.NextAt = nil, "gone", 5, "not found", o.NextAt.Add(30*24*time.Hour)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{o}))
		require.Empty(t, dueLanes(t, db, link.YouTube))

		storetest.Track(t, storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.Short))
		again := storetest.ClaimOne(t, db, link.YouTube, "video").Targets[0]
		require.Equal(t, "active", again.State)
		require.Zero(t, again.Attempts)
	})
}

func TestTarget_thatWasParkedIsRevivedByARefresh(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.Clip(t, 1)
		storetest.Track(t, o, l)
		c := storetest.ClaimOne(t, db, link.TikTok, "video")
		parked := storetest.Outcome(db, c.Targets[0], ingest.VideoFacts{})
		parked.Facts, parked.Private, parked.State, parked.Attempts, parked.NextAt = nil, new(true), "parked", 4, parked.NextAt.Add(6*24*time.Hour)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{parked}))
		require.Empty(t, dueLanes(t, db, link.TikTok))

		r, err := o.RefreshVideo(t.Context(), store.VideoRef{Link: l})
		require.NoError(t, err)
		require.True(t, r.Scheduled)
		again := storetest.ClaimOne(t, db, link.TikTok, "video").Targets[0]
		require.Equal(t, "active", again.State)
		require.Zero(t, again.Attempts)
		require.Equal(t, queue.LaneInteractive, again.Lane)
	})
}

func TestTarget_remembersWhatTheCollectorNoted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		l := storetest.ParseLink(t, storetest.Short)
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, l)
		c := storetest.ClaimOne(t, db, link.YouTube, "video")
		fresh := c.Targets[0]
		require.Equal(t, queue.Target{Platform: link.YouTube, Kind: "video", ExternalID: l.ID, Link: l.Canonical, BaseLane: queue.LanePremium, State: "active",
			RequestedAt: store.InstantOf(db.Clock.Now()), Organisation: o.ID()}, fresh, "nothing was fetched yet")

		first := storetest.Outcome(db, fresh, storetest.Views(12))
		first.Attempts, first.State, first.Pace, first.Suspect, first.NextAt = 2, "parked", queue.PaceStill, new("0 views"), first.NextAt.Add(-24*time.Hour)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{first}))
		second := storetest.ClaimOne(t, db, link.YouTube, "video")
		noted := second.Targets[0]
		require.Equal(t, c.At, *noted.FetchedAt)
		require.Equal(t, c.At, *noted.DetailsAt)
		require.EqualValues(t, 12, *noted.Views)
		require.Equal(t, "0 views", *noted.Suspect)
		require.Equal(t, 2, noted.Attempts)
		require.Equal(t, "parked", noted.State)
		require.Equal(t, queue.PaceStill, noted.Pace)

		db.Clock.Advance(time.Minute)
		counts := storetest.Outcome(db, noted, storetest.Views(13))
		counts.Details, counts.NextAt = false, counts.NextAt.Add(-24*time.Hour)
		later := store.InstantOf(db.Clock.Now())
		require.NoError(t, db.Acknowledge(t.Context(), second, later, []ingest.Outcome{counts}))
		third := storetest.ClaimOne(t, db, link.YouTube, "video")
		require.Equal(t, later, *third.Targets[0].FetchedAt)
		require.Equal(t, c.At, *third.Targets[0].DetailsAt, "this call gave counts alone")
		require.Nil(t, third.Targets[0].Suspect, "an outcome without a suspect clears it")

		failed := storetest.Outcome(db, third.Targets[0], ingest.VideoFacts{})
		failed.Facts, failed.NextAt = nil, failed.NextAt.Add(-24*time.Hour)
		require.NoError(t, db.Acknowledge(t.Context(), third, later, []ingest.Outcome{failed}))
		last := storetest.ClaimOne(t, db, link.YouTube, "video").Targets[0]
		require.Equal(t, later, *last.FetchedAt, "a failure is no fetch")
		require.EqualValues(t, 13, *last.Views)
	})
}

// Whoever tracks a video that others have had for long, gets its title and author with the first numbers.
func TestTarget_asksForDetailsForWhoeverComesLater(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.Clip(t, 1)
		storetest.Track(t, o, l)
		storetest.Deliver(t, db, link.TikTok, storetest.Views(1))
		storetest.Track(t, storetest.NewOrg(t, db), l)
		c := storetest.ClaimOne(t, db, link.TikTok, "video")
		require.NotNil(t, c.Targets[0].FetchedAt)
		require.Nil(t, c.Targets[0].DetailsAt)

		// Another comes while this is under way, after what is written for was decided.
		storetest.Track(t, storetest.NewOrg(t, db), l)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.Outcome(db, c.Targets[0], storetest.Views(1))}))
		again := storetest.ClaimOne(t, db, link.TikTok, "video")
		require.Nil(t, again.Targets[0].DetailsAt)
		require.NoError(t, db.Acknowledge(t.Context(), again, again.At, []ingest.Outcome{storetest.Outcome(db, again.Targets[0], storetest.Views(1))}))
		require.Equal(t, again.At, storetest.Column[store.Instant](t, db, "SELECT details_at FROM fetch_targets")[0])
	})
}

func TestTarget_hasTheHandlesThatSubscribersClaim(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		nameless := link.Link{Platform: link.TikTok, Kind: link.Video, ID: storetest.Clip(t, 1).ID, Canonical: "https://www.tiktok.com/@/video/" + storetest.Clip(t, 1).ID}
		storetest.Track(t, o, nameless)
		storetest.Track(t, other, storetest.Clip(t, 1))
		target := storetest.ClaimOne(t, db, link.TikTok, "video").Targets[0]
		require.Empty(t, target.Handle, "no source has confirmed one")
		require.Equal(t, []string{"someone", ""}, target.Handles)
	})
}

// Claims are tried in turn. A handle that is claimed again comes after all claims that wait longer.
func TestTarget_triesClaimedHandlesByTurns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const claims = 70
		tried := map[string]int{}
		attacker := storetest.NewOrg(t, db)
		claimed := func(handle string) link.Link {
			return storetest.ParseLink(t, "https://www.instagram.com/"+handle+"/reel/CabcdefghiJ/")
		}
		for i := range claims {
			storetest.Track(t, storetest.NewOrg(t, db), claimed(fmt.Sprintf("handle_%d", i)))
			db.Clock.Advance(time.Second)
		}
		for n := range 3 {
			storetest.Track(t, attacker, claimed(fmt.Sprintf("again_%d", n)))
			c := storetest.ClaimOne(t, db, link.Instagram, "video")
			target := c.Targets[0]
			require.LessOrEqual(t, len(target.Handles), 30)
			for _, h := range target.Handles {
				tried[h]++
			}
			o := storetest.Outcome(db, target, ingest.VideoFacts{})
			o.Facts, o.TriedHandles, o.NextAt = nil, target.Handles, store.InstantOf(db.Clock.Now().Add(time.Minute))
			require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{o}))
			db.Clock.Advance(time.Minute)
			storetest.Stop(t, attacker, storetest.ParseLink(t, "https://www.instagram.com/reel/CabcdefghiJ/"))
		}
		for i := range claims {
			require.Positive(t, tried[fmt.Sprintf("handle_%d", i)], i)
		}
	})
}

// fillQueue puts n targets of an organisation that are due into the premium lane.
func fillQueue(t *testing.T, db *storetest.DB, n int) {
	t.Helper()
	const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)`
	o, now := storetest.NewOrg(t, db), int64(store.InstantOf(db.Clock.Now()))
	db.Exec(t, `INSERT INTO fetch_targets (bucket, source, kind, external_id, handle, link, lane, base_lane, next_at, requested_at, attempts, state, detail) `+
		fmt.Sprintf(numbers, n)+` SELECT 0, 'tiktok', 'video', CAST(i AS text), '', '', 1, 1, CAST(? AS bigint) - i % 1000, 0, 0, 'active', '' FROM n`, now)
	db.Exec(t, `INSERT INTO fetch_subscriptions (bucket, source, kind, external_id, organisation_id, subject_id) `+
		fmt.Sprintf(numbers, n)+` SELECT 0, 'tiktok', 'video', CAST(i AS text), CAST(? AS `+uuidType(db)+`), CAST(? AS `+uuidType(db)+`) FROM n`, o.ID(), store.NewID())
}

func uuidType(db *storetest.DB) string {
	if db.Engine == "sqlite" {
		return "text"
	}
	return "uuid"
}

// explain returns the plan of the last statement that the store ran.
func explain(t *testing.T, db *storetest.DB, statement string, args ...any) string {
	t.Helper()
	verb := "EXPLAIN "
	if db.Engine == "sqlite" {
		verb = "EXPLAIN QUERY PLAN "
	}
	rows, err := db.Raw(t).QueryContext(t.Context(), verb+statement, args...)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(t, err)
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new(any)
	}
	var plan strings.Builder
	for rows.Next() {
		require.NoError(t, rows.Scan(values...))
		fmt.Fprintln(&plan, *values[len(values)-1].(*any))
	}
	require.NoError(t, rows.Err())
	return plan.String()
}

func TestQueue_isReadThroughItsIndexWhateverItsSize(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		fillQueue(t, db, 20_000)
		for _, statistics := range []string{"without statistics", "with statistics"} {
			if statistics == "with statistics" {
				db.Exec(t, "ANALYZE")
			}
			db.Guard.Statements()
			require.Equal(t, []queue.Lane{queue.LanePremium}, dueLanes(t, db, link.TikTok))
			asked := db.Guard.Statements()
			require.Len(t, asked, 1, "one statement for all lanes")
			var args []any
			for _, lane := range queue.Lanes {
				args = append(args, 0, "tiktok", "video", int(lane))
			}
			plan := explain(t, db, asked[0], args...)
			require.Equal(t, len(queue.Lanes), strings.Count(plan, "fetch_targets_due"), "%s: %s", statistics, plan)
			require.NotContains(t, plan, "Seq Scan", statistics)
			require.NotContains(t, plan, "SCAN fetch_targets", statistics)
			require.NotContains(t, plan, "Sort", statistics)

			_, err := db.Claim(t.Context(), queue.ClaimRequest{Collector: store.NewID(), Platform: link.TikTok, Kind: "video", Lanes: []queue.Lane{queue.LanePremium}, Limit: 50, Lease: time.Minute})
			require.NoError(t, err)
			now := int64(store.InstantOf(db.Clock.Now()))
			plan = explain(t, db, db.Guard.Statements()[0], 0, "tiktok", "video", int(queue.LanePremium), now, now, 50, now, store.NewID(), store.NewID(), 0)
			require.Contains(t, plan, "fetch_targets_due", statistics)
			require.NotContains(t, plan, "Seq Scan", "%s: %s", statistics, plan)
			require.NotContains(t, plan, "SCAN fetch_targets", "%s: %s", statistics, plan)
			require.NotContains(t, plan, "Sort", "%s: %s", statistics, plan)
		}
	})
}
