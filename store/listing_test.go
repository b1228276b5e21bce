package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// channel is an account whose source lists no more than so many videos a page, and no more than most at all.
type channel struct {
	page, most int
	undated    bool
	videos     []store.FoundVideo // the newest first
	pinned     []store.FoundVideo
}

// upload adds n videos, one an hour, the newest an hour ago.
func (ch *channel) upload(t *testing.T, db *storetest.DB, n int) {
	t.Helper()
	uploaded := make([]store.FoundVideo, n)
	for i := range uploaded {
		l := clip(t, len(ch.videos)+n-i)
		uploaded[i] = store.FoundVideo{ID: l.ID, Link: l.Canonical}
		if !ch.undated {
			uploaded[i].UploadedAt = new(store.InstantOf(db.Clock.Now().Add(-time.Duration(i+1) * time.Hour)))
		}
	}
	ch.videos = slices.Concat(uploaded, ch.videos)
}

// turn answers what is due of the channel until nothing is, and returns the depths that were asked for.
func (ch *channel) turn(t *testing.T, db *storetest.DB) []int {
	t.Helper()
	var asked []int
	for {
		claims := claim(t, db, link.TikTok, "account")
		if len(claims) == 0 {
			return asked
		}
		require.Len(t, claims, 1)
		require.Len(t, claims[0].Targets, 1)
		target := claims[0].Targets[0]
		asked = append(asked, target.Depth)
		require.Less(t, len(asked), 5, "it asks without an end: %v", asked)
		n := min(max(target.Depth, ch.page), ch.most, len(ch.videos))
		facts := listed(slices.Concat(ch.pinned, ch.videos[:n]))
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), claims[0], claims[0].At, []store.AccountOutcome{accountOutcome(db, target, facts)}))
		db.Clock.Advance(time.Second)
	}
}

const week = 7 * 24 * time.Hour

func TestListing_goesDeeperUntilItReachesWhatIsKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		channel
		kind               store.TrackingType
		before, fresh, all int // videos, and how many of them are tracked in the end
		asked              []int
	}{
		"a page reaches back":                          {channel{page: 20, most: 5000}, store.TrackLatest30, 40, 16, 46, []int{0}},
		"28 of a week":                                 {channel{page: 20, most: 5000}, store.TrackLatest30, 40, 28, 58, []int{0, 200}},
		"28 of a week, without dates":                  {channel{page: 20, most: 5000, undated: true}, store.TrackLatest30, 230, 28, 58, []int{0, 200}},
		"28 of a week, of which none is wanted before": {channel{page: 20, most: 5000}, store.TrackNewOnly, 40, 28, 28, []int{0, 200}},
		"the first ever":                               {channel{page: 20, most: 5000}, store.TrackNewOnly, 0, 28, 28, []int{0, 200}},
		"without dates, of which none is wanted":       {channel{page: 20, most: 5000, undated: true}, store.TrackNewOnly, 40, 28, 0, []int{0}},
		"a full page":                                  {channel{page: 20, most: 5000}, store.TrackLatest30, 40, 20, 50, []int{0, 200}},
		"150 and no more than 200":                     {channel{page: 50, most: 5000}, store.TrackAll, 100, 150, 250, []int{0, 200}},
		"more than 200":                                {channel{page: 20, most: 5000}, store.TrackLatest30, 40, 260, 290, []int{0, 200, 5000}},
		"the source cannot list deeper":                {channel{page: 20, most: 20}, store.TrackNewOnly, 40, 28, 20, []int{0, 200}},
		"the source cannot list beyond 200":            {channel{page: 20, most: 200}, store.TrackNewOnly, 40, 260, 200, []int{0, 200, 5000}},
		"few":                                          {channel{page: 20, most: 5000}, store.TrackNewOnly, 0, 9, 9, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				o, ch := newOrg(t, db), c.channel
				ch.upload(t, db, c.before)
				if len(ch.videos) > 3 { // on top since long before
					ch.pinned = ch.videos[len(ch.videos)-3:]
				}
				if ch.undated {
					ch.pinned = nil
				}
				follow(t, o, c.kind, parse(t, someone))
				ch.turn(t, db)
				db.Clock.Advance(2 * week)
				ch.upload(t, db, c.fresh)
				require.Equal(t, c.asked, ch.turn(t, db))
				require.Equal(t, c.all, tracked(t, o))
				db.Clock.Advance(25 * time.Hour)
				require.Equal(t, []int{0}, ch.turn(t, db), "a page is enough again")
				require.Equal(t, c.all, tracked(t, o))
				consistent(t, db, o)
			})
		})
	}
}

func TestListing_thatIsMissedIsAskedForAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, ch := newOrg(t, db), channel{page: 20, most: 5000}
		ch.upload(t, db, 40)
		follow(t, o, store.TrackLatest30, parse(t, someone))
		ch.turn(t, db)
		complete := *account(t, o, parse(t, someone)).DiscoveredAt
		db.Clock.Advance(week)
		ch.upload(t, db, 28)
		deliverAccount(t, db, listed(ch.videos[:20]))
		require.Equal(t, complete, *account(t, o, parse(t, someone)).DiscoveredAt, "the last list that was complete")

		c := claimOne(t, db, link.TikTok, "account")
		require.Equal(t, 200, c.Targets[0].Depth)
		facts := listed(nil)
		facts.Listed = false
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []store.AccountOutcome{accountOutcome(db, c.Targets[0], facts)}))
		db.Clock.Advance(25 * time.Hour)
		require.Equal(t, []int{0, 200}, ch.turn(t, db), "an answer without a list reserves no deep one, and forgets nothing")
		require.Equal(t, 58, tracked(t, o))
	})
}

func TestListing_ofWhoJoinsTakesNothingOlderForTheOthers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first, second, ch := newOrg(t, db), newOrg(t, db), channel{page: 20, most: 5000, undated: true}
		ch.upload(t, db, 300)
		follow(t, first, store.TrackLatest30, parse(t, someone))
		follow(t, second, store.TrackNewOnly, parse(t, someone))
		ch.turn(t, db)
		_, err := second.StopAccounts(t.Context(), []store.AccountRef{{Link: parse(t, someone)}}, true)
		require.NoError(t, err)
		db.Clock.Advance(store.RefreshPause) // after the pause, tracking it again fetches it at once
		ch.upload(t, db, 5)
		follow(t, second, store.TrackLatest200, parse(t, someone))
		require.Equal(t, []int{200}, ch.turn(t, db), "one list for both")
		require.Equal(t, 35, tracked(t, first))
		require.Equal(t, 200, tracked(t, second))
	})
}
