package queue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// fetchInteractiveTargets claims TikTok videos in the interactive lane and stores a result for each
// video after fetchTime. It returns the external ids of the videos.
func fetchInteractiveTargets(t *testing.T, db *storetest.DB, limit int, fetchTime time.Duration) []string {
	t.Helper()
	c, err := db.Claim(t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", limit, time.Hour, queue.LaneInteractive))
	require.NoError(t, err)
	db.Clock.Advance(fetchTime)
	outcomes := make([]ingest.Outcome, len(c.Targets))
	for i, target := range c.Targets {
		outcomes[i] = storetest.Outcome(db, target, storetest.Views(1))
	}
	require.NoError(t, db.Acknowledge(t.Context(), c, c.At, outcomes))
	return storetest.TargetIDs(c)
}

func TestInteractiveLane_manyLinksOfOneOrganisationDoNotDelayOtherOrganisations(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		burst, single, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		for n := range 10 { // the API gives the highest priority only to a request with at most 50 links, so ten requests are needed for 500 links
			storetest.Track(t, burst, storetest.VideoLinksFrom(t, 50*n, 50)...)
			db.Clock.Advance(100 * time.Millisecond)
		}
		// Fetch 16 targets in every two seconds, as eight concurrent calls that take one second each would do.
		for range 6 {
			require.Len(t, fetchInteractiveTargets(t, db, 16, 2*time.Second), 16)
		}
		tracked := db.Clock.Now()
		storetest.Track(t, single, storetest.VideoLink(t, 900))
		fetchInteractiveTargets(t, db, 16, 2*time.Second)
		require.EqualValues(t, 1, *storetest.VideoOf(t, single, storetest.VideoLink(t, 900)).Latest.Views)
		require.LessOrEqual(t, db.Clock.Now().Sub(tracked), 5*time.Second)

		storetest.Track(t, other, storetest.VideoLinksFrom(t, 1000, 100)...)
		served := fetchInteractiveTargets(t, db, 16, 2*time.Second)
		fromOther := slices.DeleteFunc(slices.Clone(served), func(id string) bool { return id < storetest.VideoLink(t, 1000).ID })
		require.InDelta(t, 8, len(fromOther), 1, "two organisations with many waiting targets must get equally many fetches")
	})
}

func TestInteractiveLane_servesANewOrganisationNextAndStarvesNoOrganisation(t *testing.T) {
	t.Parallel()
	db, next := storetest.New(t, "sqlite"), 0
	rapid.Check(t, func(rt *rapid.T) {
		const limit = 4
		orgs := make([]*store.Org, 3)
		waiting := make([][]string, len(orgs)) // for each organisation, the external ids of its waiting videos in the order of the requests
		for i := range orgs {
			orgs[i] = storetest.NewOrg(t, db)
		}
		for step := 0; step < 12 || slices.ContainsFunc(waiting, func(w []string) bool { return len(w) > 0 }); step++ {
			if step < 12 && rapid.Bool().Draw(rt, "track videos") {
				i := rapid.IntRange(0, len(orgs)-1).Draw(rt, "organisation")
				links := storetest.VideoLinksFrom(t, next, rapid.SampledFrom([]int{1, 1, 3, 20}).Draw(rt, "links"))
				next += len(links)
				storetest.Track(t, orgs[i], links...)
				for _, l := range links {
					waiting[i] = append(waiting[i], l.ID)
				}
				db.Clock.Advance(time.Millisecond)
				continue
			}
			served := fetchInteractiveTargets(t, db, limit, time.Second)
			most, least := 0, limit
			for i := range waiting {
				count := 0
				for len(waiting[i]) > 0 && slices.Contains(served, waiting[i][0]) {
					waiting[i], count = waiting[i][1:], count+1
				}
				most = max(most, count)
				if len(waiting[i]) > 0 {
					least = min(least, count)
				}
			}
			// Organisations whose targets are not all fetched yet must have got about the same number of
			// fetches. The numbers can differ by 2, because the organisations began to wait at different times.
			require.LessOrEqual(rt, most-least, 2, "%v", served)
			if len(served) < limit {
				require.Empty(rt, slices.Concat(waiting...), "a claim must be full while targets are waiting")
			}
		}
	})
}

func TestClaim_addsTargetsThatAreDueSoon(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		db.Clock.Set(db.Clock.Now().Truncate(24 * time.Hour).Add(23 * time.Hour))
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLinks(t, 7)...)
		claimed := storetest.Claim(t, db, link.TikTok, "video")[0]
		now := store.InstantOf(db.Clock.Now())
		in := func(d time.Duration) store.Instant { return now.Add(d) }
		outcomes := make([]ingest.Outcome, 7)
		for i, at := range []store.Instant{in(0), in(time.Minute), in(10 * time.Minute), in(16 * time.Minute), in(time.Minute), in(time.Minute), in(0)} {
			outcomes[i] = storetest.Outcome(db, claimed.Targets[i], storetest.Views(1))
			outcomes[i].NextAt = at
		}
		outcomes[4].Attempts = 1
		outcomes[5].Suspect = new("0 views")
		require.NoError(t, db.Acknowledge(t.Context(), claimed, claimed.At, outcomes))
		ids := func(c queue.Claim) (out []int) {
			for i := range outcomes {
				if slices.Contains(storetest.TargetIDs(c), outcomes[i].Target.ExternalID) {
					out = append(out, i)
				}
			}
			return out
		}
		r := storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 10, time.Minute, queue.LanePremium)
		r.Ahead = 15 * time.Minute
		filled, err := db.Claim(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, []int{0, 1, 2, 6}, ids(filled), "the claim must include neither targets that are due later nor retries")
		again, err := db.Claim(t.Context(), r)
		require.NoError(t, err)
		require.Empty(t, again.Targets, "the second claim must be empty, because the first claim has all due targets")

		require.NoError(t, db.Release(t.Context(), filled.Token, filled.Targets, db.Clock.Now().Add(59*time.Minute)))
		db.Clock.Set(now.Time().Add(55 * time.Minute))
		filled, err = db.Claim(t.Context(), r)
		require.NoError(t, err)
		require.Len(t, filled.Targets, 7, "all targets must be due")
		require.NoError(t, db.Release(t.Context(), filled.Token, filled.Targets, db.Clock.Now().Add(6*time.Minute)))
		db.Exec(t, "UPDATE fetch_targets SET next_at = ? WHERE external_id = ?", int64(store.InstantOf(db.Clock.Now())), outcomes[3].Target.ExternalID)
		filled, err = db.Claim(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, []int{3}, ids(filled), "targets that become due on the next UTC day must not be claimed early")
	})
}

func TestClaim_servesLanesInTheOrderInWhichTheRequestNamesThem(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		trackOnSchedule(t, newOrgInLane(t, db, queue.LaneFree), storetest.VideoLinksFrom(t, 0, 3)...)
		trackOnSchedule(t, newOrgInLane(t, db, queue.LanePremium), storetest.VideoLinksFrom(t, 10, 3)...)
		db.Clock.Advance(24 * time.Hour)
		c, err := db.Claim(t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 4, time.Minute, queue.LaneFree, queue.LanePremium))
		require.NoError(t, err)
		lanes := map[queue.Lane]int{}
		for _, target := range c.Targets {
			lanes[target.Lane]++
		}
		require.Equal(t, map[queue.Lane]int{queue.LaneFree: 3, queue.LanePremium: 1}, lanes)
	})
}

func TestDemand_countsTheScheduledTargets(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		free, premium := newOrgInLane(t, db, queue.LaneFree), newOrgInLane(t, db, queue.LanePremium)
		trackOnSchedule(t, free, storetest.VideoLinksFrom(t, 0, 4)...)
		trackOnSchedule(t, premium, storetest.VideoLink(t, 0), storetest.VideoLink(t, 10))
		trackOnSchedule(t, premium, storetest.ParseLink(t, storetest.YouTubeURL))
		for id, change := range map[int]string{1: "pace = 1", 2: "pace = 2", 3: "state = 'gone'"} {
			db.Exec(t, "UPDATE fetch_targets SET "+change+" WHERE external_id = ?", storetest.VideoLink(t, id).ID)
		}
		demand, err := db.Demand(t.Context())
		require.NoError(t, err)
		for i := range demand {
			require.NotEmpty(t, demand[i].Sample.Link)
			require.Equal(t, demand[i].Platform, demand[i].Sample.Platform)
			demand[i].Sample = queue.Target{}
		}
		require.Equal(t, []queue.Demand{
			{Platform: link.TikTok, Kind: "video", Lane: queue.LanePremium, Targets: 2}, // videos 0 and 10; both organisations track video 0, but it counts only once, in the premium lane
			{Platform: link.TikTok, Kind: "video", Lane: queue.LaneFree, Pace: queue.PaceFast, Targets: 1},
			{Platform: link.TikTok, Kind: "video", Lane: queue.LaneFree, Pace: queue.PaceSlow, Targets: 1},
			{Platform: link.YouTube, Kind: "video", Lane: queue.LanePremium, Targets: 1},
		}, demand)
	})
}

func TestClaim_prefersOrganisationsWithFewerClaimedTargets(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		burst, single, scheduled := storetest.NewOrg(t, db), storetest.NewOrg(t, db), newOrgInLane(t, db, queue.LaneFree)
		claim := func(limit int, onlyIdle bool) queue.Claim {
			t.Helper()
			r := storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", limit, time.Hour, queue.LaneInteractive)
			r.OnlyIdleOrganisations = onlyIdle
			c, err := db.Claim(t.Context(), r)
			require.NoError(t, err)
			return c
		}
		storetest.Track(t, burst, storetest.VideoLinks(t, 5)...)
		trackOnSchedule(t, scheduled, storetest.VideoLink(t, 70))
		require.Len(t, claim(2, true).Targets, 2, "while no organisation has a claimed target, every organisation must count as idle")
		require.Empty(t, claim(10, true).Targets, "an organisation with claimed targets must not count as idle")

		db.Clock.Advance(time.Second)
		storetest.Track(t, single, storetest.VideoLink(t, 80), storetest.VideoLink(t, 4)) // both organisations track video 4
		require.Equal(t, []string{storetest.VideoLink(t, 4).ID}, storetest.TargetIDs(claim(1, true)), "the target of video 4 must be claimed first, because it has the lower turn")
		require.Empty(t, claim(10, true).Targets)
		require.Equal(t, []string{storetest.VideoLink(t, 80).ID}, storetest.TargetIDs(claim(1, false)), "the organisation with one claimed target must come before the one with two")
		require.Len(t, claim(10, false).Targets, 2)
	})
}

func TestAcknowledge_movesATargetToTheNextSource(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		require.NoError(t, db.PublishRoutes(t.Context(), []queue.Route{{Platform: link.TikTok, Kind: queue.KindVideo, Route: "first"}}, []string{"first", "second"}))
		org := storetest.NewOrg(t, db)
		storetest.Track(t, org, storetest.VideoLink(t, 1))
		claim := func(route string) queue.Claim {
			t.Helper()
			r := storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 10, time.Hour, queue.LaneInteractive)
			r.Route = route
			c, err := db.Claim(t.Context(), r)
			require.NoError(t, err)
			return c
		}
		require.Empty(t, claim("second").Targets)
		c := claim("first")
		require.Len(t, c.Targets, 1)
		require.Equal(t, org.ID(), *c.Targets[0].AskedBy)
		o := ingest.Outcome{Target: c.Targets[0], State: queue.StateActive, NextAt: store.InstantOf(db.Clock.Now()), Route: "second", Answers: new(`{"running":true}`), Onward: true}
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{o}))
		require.Empty(t, claim("first").Targets)
		c = claim("second")
		require.Len(t, c.Targets, 1, "the target must be due immediately and stay in the interactive lane")
		require.JSONEq(t, `{"running":true}`, *c.Targets[0].Answers)

		o = storetest.Outcome(db, c.Targets[0], storetest.Views(7))
		o.Route = "second"
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{o}))
		require.NoError(t, db.PublishRoutes(t.Context(), []queue.Route{{Platform: link.TikTok, Kind: queue.KindVideo, Route: "third"}}, []string{"third"}))
		require.Equal(t, []string{"third"}, storetest.Column[string](t, db, "SELECT route FROM fetch_targets"), "a target whose next source is no longer configured must start again with the first source")
	})
}

func TestAcknowledge_keepsTheOrderFairIfTargetsMoveToTheNextSource(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		require.NoError(t, db.PublishRoutes(t.Context(), []queue.Route{{Platform: link.TikTok, Kind: queue.KindVideo, Route: "first"}}, []string{"first", "second"}))
		claim := func(route string, limit int) queue.Claim {
			t.Helper()
			r := storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", limit, time.Hour, queue.LaneInteractive)
			r.Route = route
			c, err := db.Claim(t.Context(), r)
			require.NoError(t, err)
			return c
		}
		moveToSecond := func() {
			t.Helper()
			c := claim("first", 100)
			outcomes := make([]ingest.Outcome, len(c.Targets))
			for i, target := range c.Targets {
				outcomes[i] = ingest.Outcome{Target: target, State: queue.StateActive, NextAt: store.InstantOf(db.Clock.Now()), Route: "second", Onward: true}
			}
			require.NoError(t, db.Acknowledge(t.Context(), c, c.At, outcomes))
		}
		storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLinksFrom(t, 0, 30)...)
		moveToSecond()
		db.Clock.Advance(time.Second)
		storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLink(t, 80))
		moveToSecond()
		require.Contains(t, storetest.TargetIDs(claim("second", 2)), storetest.VideoLink(t, 80).ID, "the single target of the other organisation must be among the first two")
	})
}

func TestAcknowledge_writesDetailsWithoutCountsIfOnlyDetailsWereFetched(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		org := storetest.NewOrg(t, db)
		storetest.Track(t, org, storetest.VideoLink(t, 1))
		storetest.Deliver(t, db, link.TikTok, storetest.Views(7))
		before := storetest.VideoOf(t, org, storetest.VideoLink(t, 1))
		db.Clock.Advance(25 * time.Hour)
		for _, c := range storetest.Claim(t, db, link.TikTok, "video") {
			o := storetest.Outcome(db, c.Targets[0], ingest.VideoFacts{Views: new(int64(99)), Title: new("A title")})
			o.DetailsOnly, o.Source = true, "other"
			require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{o}))
		}
		after := storetest.VideoOf(t, org, storetest.VideoLink(t, 1))
		require.Equal(t, "A title", after.Title)
		require.EqualValues(t, 7, *after.Latest.Views)
		require.Equal(t, before.LatestUpdatedAt, after.LatestUpdatedAt)
		require.Equal(t, []string{"test"}, storetest.Column[string](t, db, "SELECT source FROM snapshots_daily"), "a fetch of details must add no point")
	})
}
