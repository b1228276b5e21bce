package queue_test

import (
	"fmt"
	"math"
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

// lanesWithDueTargets returns the lanes in which a target without a route is due. The route is the source to ask.
func lanesWithDueTargets(t *testing.T, db *storetest.DB) []queue.Lane {
	t.Helper()
	lanes, err := db.DueLanes(t.Context(), "")
	require.NoError(t, err)
	return lanes
}

// newOrgInLane creates an organisation whose scheduled fetches have the given priority.
func newOrgInLane(t *testing.T, db *storetest.DB, lane queue.Lane) *store.Org {
	t.Helper()
	switch lane {
	case queue.LaneFree:
		return newOrgWithTier(t, db, store.TierBasic, store.SubscriptionNone)
	case queue.LaneBasic:
		return newOrgWithTier(t, db, store.TierBasic, store.SubscriptionActive)
	default:
		return newOrgWithTier(t, db, store.TierPremium, store.SubscriptionActive)
	}
}

// trackOnSchedule tracks links. Each video is due at its time in the daily schedule, and not immediately.
func trackOnSchedule(t *testing.T, o *store.Org, links ...link.Link) {
	t.Helper()
	_, err := o.Track(t.Context(), store.TrackRequest{Links: links, Allowance: len(links), Scheduled: true})
	require.NoError(t, err)
}

func TestDueLanes_returnsTheLanesWithDueTargets(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		require.Empty(t, lanesWithDueTargets(t, db))
		trackOnSchedule(t, newOrgInLane(t, db, queue.LaneFree), storetest.VideoLink(t, 1))
		trackOnSchedule(t, newOrgInLane(t, db, queue.LaneBasic), storetest.VideoLink(t, 2))
		trackOnSchedule(t, newOrgInLane(t, db, queue.LanePremium), storetest.VideoLink(t, 3))
		require.Empty(t, lanesWithDueTargets(t, db), "no lane may have a due target before the scheduled times of the videos")
		storetest.Track(t, o, storetest.VideoLink(t, 4))
		require.Equal(t, []queue.Lane{queue.LaneInteractive}, lanesWithDueTargets(t, db))
		db.Clock.Advance(24 * time.Hour)
		require.Equal(t, queue.Lanes, lanesWithDueTargets(t, db), "the most urgent lane must come first")
		other, err := db.DueLanes(t.Context(), "another source")
		require.NoError(t, err)
		require.Empty(t, other)

		for i, lane := range queue.Lanes {
			c, err := db.Claim(t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 10, time.Minute, lane))
			require.NoError(t, err)
			require.Equal(t, []string{storetest.VideoLink(t, 4-i).ID}, storetest.TargetIDs(c))
			require.Equal(t, lane, c.Targets[0].Lane)
		}
		require.Empty(t, lanesWithDueTargets(t, db), "no lane may have a due target while all targets are claimed")
	})
}

func TestLaneOf_dependsOnSubscriptionAndTier(t *testing.T) {
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

func TestEnqueue_usesTheMostUrgentLaneOfTheSubscribers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		for _, lane := range []queue.Lane{queue.LaneFree, queue.LanePremium, queue.LaneBasic} {
			trackOnSchedule(t, newOrgInLane(t, db, lane), storetest.VideoLink(t, 1))
		}
		db.Clock.Advance(24 * time.Hour)
		require.Equal(t, []queue.Lane{queue.LanePremium}, lanesWithDueTargets(t, db))
	})
}

func TestAcknowledge_keepsATargetInTheInteractiveLaneOnlyIfARetryIsSoon(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*ingest.Outcome)
		want   queue.Lane
	}{
		"fetched": {func(*ingest.Outcome) {}, queue.LanePremium},
		"a failed fetch whose retry is due within minutes": {func(o *ingest.Outcome) { o.Facts, o.NextAt = nil, o.NextAt.Add(-24*time.Hour+4*time.Minute) }, queue.LaneInteractive},
		"a failed fetch whose retry is due the next day":   {func(o *ingest.Outcome) { o.Facts = nil }, queue.LanePremium},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLink(t, 1))
				held := storetest.ClaimOne(t, db, link.TikTok, "video")
				o := storetest.Outcome(db, held.Targets[0], storetest.Views(1))
				c.change(&o)
				require.NoError(t, db.Acknowledge(t.Context(), held, held.At, []ingest.Outcome{o}))
				db.Clock.Set(o.NextAt.Time().Add(-time.Microsecond))
				require.Empty(t, lanesWithDueTargets(t, db))
				db.Clock.Set(o.NextAt.Time())
				require.Equal(t, []queue.Lane{c.want}, lanesWithDueTargets(t, db))
			})
		})
	}
}

func TestEnqueue_neverDelaysATarget(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first, second, l := storetest.NewOrg(t, db), newOrgInLane(t, db, queue.LaneFree), storetest.VideoLink(t, 1)
		storetest.Track(t, first, l)
		trackOnSchedule(t, second, l)
		require.Equal(t, []queue.Lane{queue.LaneInteractive}, lanesWithDueTargets(t, db))
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(3)))
		require.EqualValues(t, 3, *storetest.VideoOf(t, second, l).Latest.Views, "one fetch must store the views for both organisations")

		third := storetest.NewOrg(t, db)
		require.Empty(t, lanesWithDueTargets(t, db))
		storetest.Track(t, third, l)
		require.Equal(t, []queue.Lane{queue.LaneInteractive}, lanesWithDueTargets(t, db), "a more urgent request must make the target due earlier")
	})
}

func TestEnqueue_reactivatesATargetThatIsGone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.Track(t, storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL))
		c := storetest.ClaimOne(t, db, link.YouTube, "video")
		o := storetest.Outcome(db, c.Targets[0], ingest.VideoFacts{})
		o.Facts, o.State, o.Attempts, o.Detail, o.NextAt = nil, "gone", 5, "not found", o.NextAt.Add(30*24*time.Hour)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{o}))
		other, err := db.DueLanes(t.Context(), "another source")
		require.NoError(t, err)
		require.Empty(t, other)

		storetest.Track(t, storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL))
		again := storetest.ClaimOne(t, db, link.YouTube, "video").Targets[0]
		require.Equal(t, "active", again.State)
		require.Zero(t, again.Attempts)
	})
}

func TestAcknowledge_keepsTheRestartOfATargetThatIsRequestedDuringItsFetch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		l := storetest.ParseLink(t, storetest.YouTubeURL)
		storetest.Track(t, storetest.NewOrg(t, db), l)
		gone := func(c queue.Claim) {
			t.Helper()
			o := storetest.Outcome(db, c.Targets[0], ingest.VideoFacts{})
			o.Facts, o.State, o.Attempts, o.RefusedAs, o.Refusals, o.Answers, o.NextAt = nil, queue.StateGone, 3, queue.StateGone, 3, new("[]"), store.InstantOf(db.Clock.Now())
			o.Detail, o.Route = "not found", "second"
			require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{o}))
		}
		gone(storetest.ClaimOne(t, db, link.YouTube, "video"))
		r := storetest.NewClaimRequest(store.NewID(), link.YouTube, queue.KindVideo, 1, time.Minute, queue.Lanes...)
		r.Route = "second"
		again, err := db.Claim(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, queue.StateGone, again.Targets[0].State)
		db.Clock.Advance(time.Second)
		storetest.Track(t, storetest.NewOrg(t, db), l)
		gone(again)
		restarted := storetest.ClaimOne(t, db, link.YouTube, "video").Targets[0]
		require.Equal(t, queue.StateActive, restarted.State)
		require.Zero(t, restarted.Attempts)
		require.Zero(t, restarted.Refusals)
		require.Empty(t, restarted.RefusedAs)
		require.Empty(t, restarted.Route, "the first source must be asked")
		require.Nil(t, restarted.Answers)
		require.Equal(t, "not found", restarted.Detail)
	})
}

func TestRefreshVideo_reactivatesATargetWhoseStateIsParked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		c := storetest.ClaimOne(t, db, link.TikTok, "video")
		parked := storetest.Outcome(db, c.Targets[0], ingest.VideoFacts{})
		parked.Facts, parked.Private, parked.State, parked.Attempts, parked.NextAt = nil, new(true), "parked", 4, parked.NextAt.Add(6*24*time.Hour)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{parked}))
		require.Empty(t, lanesWithDueTargets(t, db))

		r, err := o.RefreshVideo(t.Context(), store.Ref{Link: l}, nil)
		require.NoError(t, err)
		require.True(t, r.Scheduled)
		again := storetest.ClaimOne(t, db, link.TikTok, "video").Targets[0]
		require.Equal(t, "active", again.State)
		require.Zero(t, again.Attempts)
		require.Equal(t, queue.LaneInteractive, again.Lane)
	})
}

func TestAcknowledge_storesTheStateOfTheTarget(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		l := storetest.ParseLink(t, storetest.YouTubeURL)
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, l)
		c := storetest.ClaimOne(t, db, link.YouTube, "video")
		fresh := c.Targets[0]
		require.Equal(t, queue.Target{Platform: link.YouTube, Kind: "video", ExternalID: l.ID, Link: l.Canonical, BaseLane: queue.LanePremium, State: "active",
			RequestedAt: store.InstantOf(db.Clock.Now()), AskedBy: new(o.ID())}, fresh, "a target that was never fetched must have no results of fetches")

		first := storetest.Outcome(db, fresh, ingest.VideoFacts{Views: new(int64(12)), Likes: new(int64(4)), Comments: new(int64(3)), Shares: new(int64(2)), Bookmarks: new(int64(1))})
		first.Attempts, first.State, first.Pace, first.Suspect, first.NextAt = 2, "parked", queue.PaceSlow, new("0 views"), first.NextAt.Add(-24*time.Hour)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{first}))
		second := storetest.ClaimOne(t, db, link.YouTube, "video")
		noted := second.Targets[0]
		require.Equal(t, c.At, *noted.FetchedAt)
		require.Equal(t, c.At, *noted.DetailsAt)
		require.EqualValues(t, 12, *noted.Views)
		require.Equal(t, "0 views", *noted.Suspect)
		require.Equal(t, 2, noted.Attempts)
		require.Equal(t, "parked", noted.State)
		require.Equal(t, queue.PaceSlow, noted.Pace)

		db.Clock.Advance(time.Minute)
		counts := storetest.Outcome(db, noted, storetest.Views(13))
		counts.Details, counts.NextAt = false, counts.NextAt.Add(-24*time.Hour)
		later := store.InstantOf(db.Clock.Now())
		require.NoError(t, db.Acknowledge(t.Context(), second, later, []ingest.Outcome{counts}))
		third := storetest.ClaimOne(t, db, link.YouTube, "video")
		require.Equal(t, later, *third.Targets[0].FetchedAt)
		require.Equal(t, c.At, *third.Targets[0].DetailsAt, "a fetch without details must not change the time of the last fetch with details")
		require.Nil(t, third.Targets[0].Suspect, "an outcome without a suspicious count must delete the note on an earlier suspicious count")

		failed := storetest.Outcome(db, third.Targets[0], ingest.VideoFacts{})
		failed.Facts, failed.NextAt = nil, failed.NextAt.Add(-24*time.Hour)
		require.NoError(t, db.Acknowledge(t.Context(), third, later, []ingest.Outcome{failed}))
		last := storetest.ClaimOne(t, db, link.YouTube, "video").Targets[0]
		require.Equal(t, later, *last.FetchedAt, "a failed fetch must not change the time of the last fetch")
		require.Equal(t, []int64{13, 4, 3, 2, 1}, []int64{*last.Views, *last.Likes, *last.Comments, *last.Shares, *last.Bookmarks}, "a count that a fetch does not report must stay")
	})
}

// An organisation starts to track a video that was already fetched for another organisation. The next fetch must include the details.
func TestEnqueue_requestsDetailsForANewSubscriber(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		storetest.Deliver(t, db, link.TikTok, storetest.Views(1))
		storetest.Track(t, storetest.NewOrg(t, db), l)
		c := storetest.ClaimOne(t, db, link.TikTok, "video")
		require.NotNil(t, c.Targets[0].FetchedAt)
		require.Nil(t, c.Targets[0].DetailsAt)

		// A third organisation subscribes after the target was claimed.
		storetest.Track(t, storetest.NewOrg(t, db), l)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.Outcome(db, c.Targets[0], storetest.Views(1))}))
		again := storetest.ClaimOne(t, db, link.TikTok, "video")
		require.Nil(t, again.Targets[0].DetailsAt)
		require.NoError(t, db.Acknowledge(t.Context(), again, again.At, []ingest.Outcome{storetest.Outcome(db, again.Targets[0], storetest.Views(1))}))
		require.Equal(t, again.At, storetest.Column[store.Instant](t, db, "SELECT details_at FROM fetch_targets")[0])
	})
}

func TestClaim_returnsHandlesFromSubscribersLinks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		withoutHandle := link.Link{Platform: link.TikTok, Kind: link.Video, ID: storetest.VideoLink(t, 1).ID, Canonical: "https://www.tiktok.com/@/video/" + storetest.VideoLink(t, 1).ID}
		storetest.Track(t, o, withoutHandle)
		storetest.Track(t, other, storetest.VideoLink(t, 1))
		target := storetest.ClaimOne(t, db, link.TikTok, "video").Targets[0]
		require.Empty(t, target.Handle, "the target must have no confirmed handle")
		require.Equal(t, []string{"someone", ""}, target.Handles)
	})
}

// Handles are tried in the order of the time at which they were sent or last tried, the oldest time first. So
// every handle is tried sooner or later.
func TestClaim_returnsTheLeastRecentlyTriedHandlesFirst(t *testing.T) {
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
			storetest.StopVideos(t, attacker, storetest.ParseLink(t, "https://www.instagram.com/reel/CabcdefghiJ/"))
		}
		for i := range claims {
			require.Positive(t, tried[fmt.Sprintf("handle_%d", i)], i)
		}
	})
}

// fillQueue adds n due targets of an organisation to the premium lane.
func fillQueue(t *testing.T, db *storetest.DB, n int) {
	t.Helper()
	const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)`
	o, now := storetest.NewOrg(t, db), int64(store.InstantOf(db.Clock.Now()))
	db.Exec(t, `INSERT INTO fetch_targets (bucket, source, kind, external_id, handle, link, lane, base_lane, next_at, requested_at, attempts, state, detail) `+
		fmt.Sprintf(numbers, n)+` SELECT 0, 'tiktok', 'video', CAST(i AS text), '', '', 1, 1, CAST(? AS bigint) - i % 1000, 0, 0, 'active', '' FROM n`, now)
	db.Exec(t, `INSERT INTO fetch_subscriptions (bucket, source, kind, external_id, organisation_id, subject_id) `+
		fmt.Sprintf(numbers, n)+` SELECT 0, 'tiktok', 'video', CAST(i AS text), CAST(? AS `+uuidType(db)+`), CAST(? AS `+uuidType(db)+`) FROM n`, o.ID(), store.NewID())
}

// uuidType returns the name of the SQL type for UUIDs in the database.
func uuidType(db *storetest.DB) string {
	if db.Engine == "sqlite" {
		return "text"
	}
	return "uuid"
}

// queryPlan returns the query plan of a statement as text.
func queryPlan(t *testing.T, db *storetest.DB, statement string, args ...any) string {
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

func TestQueue_isAlwaysReadThroughIndexes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		fillQueue(t, db, 20_000)
		for _, statistics := range []string{"without statistics", "with statistics"} {
			if statistics == "with statistics" {
				db.Exec(t, "ANALYZE")
			}
			db.Guard.Statements()
			require.Equal(t, []queue.Lane{queue.LanePremium}, lanesWithDueTargets(t, db))
			asked := db.Guard.Statements()
			require.Len(t, asked, 1, "one statement must read all lanes")
			var args []any
			for _, lane := range queue.Lanes {
				args = append(args, 0, "", int(lane))
			}
			plan := queryPlan(t, db, asked[0], args...)
			require.Equal(t, len(queue.Lanes), strings.Count(plan, "fetch_targets_due")+strings.Count(plan, "fetch_targets_waiting"), "%s: %s", statistics, plan)
			require.NotContains(t, plan, "Seq Scan", statistics)
			require.NotContains(t, plan, "SCAN fetch_targets", statistics)
			require.NotContains(t, plan, "Sort", statistics)

			_, err := db.Claim(t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 50, time.Minute, queue.LanePremium))
			require.NoError(t, err)
			now := int64(store.InstantOf(db.Clock.Now()))
			plan = queryPlan(t, db, db.Guard.Statements()[0], 0, "", int(queue.LanePremium), 0, now, "video", 50)
			require.Contains(t, plan, "fetch_targets_due", statistics)
			require.NotContains(t, plan, "Seq Scan", "%s: %s", statistics, plan)
			require.NotContains(t, plan, "SCAN fetch_targets", "%s: %s", statistics, plan)
			require.NotContains(t, plan, "Sort", "%s: %s", statistics, plan)

			_, err = db.Claim(t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 50, time.Minute, queue.LaneInteractive))
			require.NoError(t, err)
			plan = queryPlan(t, db, db.Guard.Statements()[0], 0, "", 0, "", now, "video", 0, "", now, "video", 999, int64(math.MaxInt64), 50)
			require.Contains(t, plan, "fetch_targets_waiting", statistics)
			require.NotContains(t, plan, "Seq Scan on fetch_targets", "%s: %s", statistics, plan)
			require.NotContains(t, plan, "SCAN fetch_targets", "%s: %s", statistics, plan)
		}
	})
}
