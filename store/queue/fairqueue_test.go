package queue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// serve claims up to limit TikTok videos in the interactive lane, and delivers them when they have taken so long.
func serve(t *testing.T, db *storetest.DB, limit int, took time.Duration) []string {
	t.Helper()
	c, err := db.Claim(t.Context(), queue.ClaimRequest{Collector: store.NewID(), Platform: link.TikTok, Kind: "video",
		Lanes: []queue.Lane{queue.LaneInteractive}, Limit: limit, Lease: time.Hour})
	require.NoError(t, err)
	db.Clock.Advance(took)
	outcomes := make([]ingest.Outcome, len(c.Targets))
	for i, target := range c.Targets {
		outcomes[i] = storetest.Outcome(db, target, storetest.Views(1))
	}
	require.NoError(t, db.Acknowledge(t.Context(), c, c.At, outcomes))
	return storetest.TargetIDs(c)
}

func TestTurns_aBurstDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		burst, single, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		for n := range 10 { // as many requests of 50 links, the most that are fetched at once
			storetest.Track(t, burst, storetest.ClipsFrom(t, 50*n, 50)...)
			db.Clock.Advance(100 * time.Millisecond)
		}
		// A source that takes a second a call, of which eight run at once: two seconds for 16 targets.
		for range 6 {
			require.Len(t, serve(t, db, 16, 2*time.Second), 16)
		}
		asked := db.Clock.Now()
		storetest.Track(t, single, storetest.Clip(t, 900))
		serve(t, db, 16, 2*time.Second)
		require.EqualValues(t, 1, *storetest.VideoOf(t, single, storetest.Clip(t, 900)).LatestViews)
		require.LessOrEqual(t, db.Clock.Now().Sub(asked), 5*time.Second)

		storetest.Track(t, other, storetest.ClipsFrom(t, 1000, 100)...)
		served := serve(t, db, 16, 2*time.Second)
		ours := slices.DeleteFunc(slices.Clone(served), func(id string) bool { return id < storetest.Clip(t, 1000).ID })
		require.InDelta(t, 8, len(ours), 1, "two bursts share the calls")
	})
}

func TestTurns_whoComesNewComesNextAndNobodyStarves(t *testing.T) {
	t.Parallel()
	db, next := storetest.New(t, "sqlite"), 0
	rapid.Check(t, func(rt *rapid.T) {
		const limit = 4
		orgs := make([]*store.Org, 3)
		waiting := make([][]string, len(orgs)) // by organisation, in the order in which they asked
		for i := range orgs {
			orgs[i] = storetest.NewOrg(t, db)
		}
		for step := 0; step < 12 || slices.ContainsFunc(waiting, func(w []string) bool { return len(w) > 0 }); step++ {
			if step < 12 && rapid.Bool().Draw(rt, "somebody adds") {
				i := rapid.IntRange(0, len(orgs)-1).Draw(rt, "who")
				links := storetest.ClipsFrom(t, next, rapid.SampledFrom([]int{1, 1, 3, 20}).Draw(rt, "links"))
				next += len(links)
				storetest.Track(t, orgs[i], links...)
				for _, l := range links {
					waiting[i] = append(waiting[i], l.ID)
				}
				db.Clock.Advance(time.Millisecond)
				continue
			}
			served := serve(t, db, limit, time.Second)
			most, least := 0, limit
			for i := range waiting {
				took := 0
				for len(waiting[i]) > 0 && slices.Contains(served, waiting[i][0]) {
					waiting[i], took = waiting[i][1:], took+1
				}
				most = max(most, took)
				if len(waiting[i]) > 0 {
					least = min(least, took)
				}
			}
			// Who still waits had its share, give or take the turn at which it joined.
			require.LessOrEqual(rt, most-least, 2, "%v", served)
			if len(served) < limit {
				require.Empty(rt, slices.Concat(waiting...), "a call had room, and somebody waits")
			}
		}
	})
}

func TestClaim_fillsACallWithWhatIsDueSoon(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		db.Clock.Set(db.Clock.Now().Truncate(24 * time.Hour).Add(23 * time.Hour))
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.Clips(t, 7)...)
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
		r := queue.ClaimRequest{Collector: store.NewID(), Platform: link.TikTok, Kind: "video", Lanes: []queue.Lane{queue.LanePremium}, Limit: 10, Lease: time.Minute, Ahead: 15 * time.Minute}
		filled, err := db.Claim(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, []int{0, 1, 2, 6}, ids(filled), "neither what is due later nor a retry")
		again, err := db.Claim(t.Context(), r)
		require.NoError(t, err)
		require.Empty(t, again.Targets, "what is due soon alone is no reason for a call, and what is held is not due soon")

		require.NoError(t, db.Release(t.Context(), filled, db.Clock.Now().Add(59*time.Minute)))
		db.Clock.Set(now.Time().Add(55 * time.Minute))
		filled, err = db.Claim(t.Context(), r)
		require.NoError(t, err)
		require.Len(t, filled.Targets, 7, "all are due")
		require.NoError(t, db.Release(t.Context(), filled, db.Clock.Now().Add(6*time.Minute)))
		db.Exec(t, "UPDATE fetch_targets SET next_at = ? WHERE external_id = ?", int64(store.InstantOf(db.Clock.Now())), outcomes[3].Target.ExternalID)
		filled, err = db.Claim(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, []int{3}, ids(filled), "the others are for the next UTC day")
	})
}

func TestClaim_servesLanesInTheOrderAskedFor(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		wish(t, storetest.NewOrg(t, db), queue.LaneFree, storetest.ClipsFrom(t, 0, 3)...)
		wish(t, storetest.NewOrg(t, db), queue.LanePremium, storetest.ClipsFrom(t, 10, 3)...)
		db.Clock.Advance(24 * time.Hour)
		c, err := db.Claim(t.Context(), queue.ClaimRequest{Collector: store.NewID(), Platform: link.TikTok, Kind: "video",
			Lanes: []queue.Lane{queue.LaneFree, queue.LanePremium}, Limit: 4, Lease: time.Minute})
		require.NoError(t, err)
		lanes := map[queue.Lane]int{}
		for _, target := range c.Targets {
			lanes[target.Lane]++
		}
		require.Equal(t, map[queue.Lane]int{queue.LaneFree: 3, queue.LanePremium: 1}, lanes)
	})
}

func TestDemand_countsWhatTheScheduleFetches(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		free, premium := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		wish(t, free, queue.LaneFree, storetest.ClipsFrom(t, 0, 4)...)
		wish(t, premium, queue.LanePremium, storetest.Clip(t, 0), storetest.Clip(t, 10))
		wish(t, premium, queue.LanePremium, storetest.ParseLink(t, storetest.Short))
		for id, change := range map[int]string{1: "pace = 1", 2: "pace = 2", 3: "state = 'gone'"} {
			db.Exec(t, "UPDATE fetch_targets SET "+change+" WHERE external_id = ?", storetest.Clip(t, id).ID)
		}
		demand, err := db.Demand(t.Context())
		require.NoError(t, err)
		for i := range demand {
			require.NotEmpty(t, demand[i].Sample.Link)
			require.Equal(t, demand[i].Platform, demand[i].Sample.Platform)
			demand[i].Sample = queue.Target{}
		}
		require.Equal(t, []queue.Demand{
			{Platform: link.TikTok, Kind: "video", Lane: queue.LanePremium, Targets: 2}, // one of them for both
			{Platform: link.TikTok, Kind: "video", Lane: queue.LaneFree, Pace: queue.PaceFast, Targets: 1},
			{Platform: link.TikTok, Kind: "video", Lane: queue.LaneFree, Pace: queue.PaceStill, Targets: 1},
			{Platform: link.YouTube, Kind: "video", Lane: queue.LanePremium, Targets: 1},
		}, demand)
	})
}

func TestNewcomers_areThoseWhoAreNotServed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		burst, single, scheduled := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		newcomers := func(limit int, served ...uuid.UUID) []queue.Waiting {
			t.Helper()
			out, err := db.Newcomers(t.Context(), link.TikTok, "video", served, limit)
			require.NoError(t, err)
			return out
		}
		storetest.Track(t, burst, storetest.Clips(t, 5)...)
		wish(t, scheduled, queue.LaneFree, storetest.Clip(t, 70))
		require.Len(t, newcomers(10), 5, "when nobody is served, all are new")
		require.Len(t, newcomers(3), 3)
		require.Empty(t, newcomers(10, burst.ID()))

		db.Clock.Advance(time.Second)
		storetest.Track(t, single, storetest.Clip(t, 80), storetest.Clip(t, 2)) // of which the burst has one as well
		want := []queue.Waiting{{ExternalID: storetest.Clip(t, 80).ID, Organisation: single.ID()}, {ExternalID: storetest.Clip(t, 2).ID, Organisation: single.ID()}}
		require.ElementsMatch(t, want, newcomers(10, burst.ID()))
		require.Empty(t, newcomers(10, burst.ID(), single.ID()))

		claimed, err := db.Claim(t.Context(), queue.ClaimRequest{Collector: store.NewID(), Platform: link.TikTok, Kind: "video",
			Lanes: []queue.Lane{queue.LaneInteractive}, Limit: 10, Lease: time.Minute, Only: []string{storetest.Clip(t, 80).ID}})
		require.NoError(t, err)
		require.Equal(t, []string{storetest.Clip(t, 80).ID}, storetest.TargetIDs(claimed))
		require.Equal(t, single.ID(), claimed.Targets[0].Organisation)
		require.Equal(t, want[1:], newcomers(10, burst.ID()), "what is claimed waits no more")
	})
}
