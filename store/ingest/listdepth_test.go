package ingest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// channel is a fake account. Its source lists pageSize videos by default, and never more than maxListed videos.
type channel struct {
	pageSize, maxListed int
	undated             bool
	tellsEnd            bool                // true if the source says whether its list continues after the listed videos
	budgetEnd           int                 // the call budget ends each list after this many videos, and a later call can get more units; 0 if the budget ends no list
	videos              []ingest.FoundVideo // all videos of the account, the newest first
	pinned              []ingest.FoundVideo
}

// uploadVideos adds n videos that were uploaded at intervals of an hour, the newest an hour ago.
func (ch *channel) uploadVideos(t *testing.T, db *storetest.DB, n int) {
	t.Helper()
	uploaded := make([]ingest.FoundVideo, n)
	for i := range uploaded {
		l := storetest.VideoLink(t, len(ch.videos)+n-i)
		uploaded[i] = ingest.FoundVideo{ID: l.ID, Link: l.Canonical}
		if !ch.undated {
			uploaded[i].UploadedAt = new(store.InstantOf(db.Clock.Now().Add(-time.Duration(i+1) * time.Hour)))
		}
	}
	ch.videos = slices.Concat(uploaded, ch.videos)
}

// fetchAccountWhileDue fetches the account as long as its target is due. It returns the list length that each fetch requested, in the order of the
// fetches.
func (ch *channel) fetchAccountWhileDue(t *testing.T, db *storetest.DB) []int {
	t.Helper()
	var depths []int
	for {
		claims := storetest.Claim(t, db, link.TikTok, "account")
		if len(claims) == 0 {
			return depths
		}
		require.Len(t, claims, 1)
		require.Len(t, claims[0].Targets, 1)
		target := claims[0].Targets[0]
		depths = append(depths, target.Depth)
		require.Less(t, len(depths), 5, "the target must not be due any more: %v", depths)
		n := min(max(target.Depth, ch.pageSize), ch.maxListed, len(ch.videos))
		ended := ch.budgetEnd > 0 && ch.budgetEnd < n
		if ended {
			n = ch.budgetEnd
		}
		facts := storetest.ListedAccount(slices.Concat(ch.pinned, ch.videos[:n]))
		facts.ListContinues, facts.Unfinished = (ch.tellsEnd || ended) && n < len(ch.videos), ended
		require.NoError(t, db.Acknowledge(t.Context(), claims[0], claims[0].At, []ingest.Outcome{storetest.AccountOutcome(db, target, facts)}))
		db.Clock.Advance(time.Second)
	}
}

const week = 7 * 24 * time.Hour

func TestBackfill_requestsLongerListsUntilAListReachesAKnownVideo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		channel
		kind               store.TrackingType
		before, fresh, all int // numbers of videos: uploaded before tracking began, uploaded later, and tracked at the end of the test
		asked              []int
	}{
		"a known video on the first page":                          {channel{pageSize: 20, maxListed: 5000}, store.TrackLatest30, 40, 16, 46, []int{0}},
		"28 new videos":                                            {channel{pageSize: 20, maxListed: 5000}, store.TrackLatest30, 40, 28, 58, []int{0, 200}},
		"28 new videos without dates":                              {channel{pageSize: 20, maxListed: 5000, undated: true}, store.TrackLatest30, 230, 28, 58, []int{0, 200}},
		"tracking type new_only with 28 new videos":                {channel{pageSize: 20, maxListed: 5000}, store.TrackNewOnly, 40, 28, 28, []int{0, 200}},
		"tracking type new_only for an account that had no videos": {channel{pageSize: 20, maxListed: 5000}, store.TrackNewOnly, 0, 28, 28, []int{0, 200}},
		"tracking type new_only with 28 new videos without dates":  {channel{pageSize: 20, maxListed: 5000, undated: true}, store.TrackNewOnly, 40, 28, 0, []int{0}},
		"28 new videos without dates of an account that had three": {channel{pageSize: 20, maxListed: 5000, undated: true}, store.TrackLatest30, 3, 28, 31, []int{0, 200}},
		"as many new videos as fit on a page":                      {channel{pageSize: 20, maxListed: 5000}, store.TrackLatest30, 40, 20, 50, []int{0, 200}},
		"150 new videos":                                           {channel{pageSize: 50, maxListed: 5000}, store.TrackAll, 100, 150, 250, []int{0, 200}},
		"more than 200 new videos":                                 {channel{pageSize: 20, maxListed: 5000}, store.TrackLatest30, 40, 260, 290, []int{0, 200, 5000}},
		"a source that lists at most one page":                     {channel{pageSize: 20, maxListed: 20}, store.TrackNewOnly, 40, 28, 20, []int{0, 200}},
		"a source that lists at most 200 videos":                   {channel{pageSize: 20, maxListed: 200}, store.TrackNewOnly, 40, 260, 200, []int{0, 200, 5000}},
		"few videos on a page that does not end the list":          {channel{pageSize: 5, maxListed: 5000, tellsEnd: true}, store.TrackLatest30, 40, 28, 58, []int{0, 200}},
		"few videos on a page that ends the list":                  {channel{pageSize: 9, maxListed: 5000, tellsEnd: true}, store.TrackNewOnly, 0, 9, 9, []int{0}},
		"fewer videos than fit on a page":                          {channel{pageSize: 20, maxListed: 5000}, store.TrackNewOnly, 0, 9, 9, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				o, ch := storetest.NewOrg(t, db), c.channel
				ch.uploadVideos(t, db, c.before)
				if len(ch.videos) > 3 { // pin the oldest three videos
					ch.pinned = ch.videos[len(ch.videos)-3:]
				}
				if ch.undated {
					ch.pinned = nil
				}
				storetest.Follow(t, o, c.kind, storetest.ParseLink(t, storetest.AccountURL))
				ch.fetchAccountWhileDue(t, db)
				db.Clock.Advance(2 * week)
				ch.uploadVideos(t, db, c.fresh)
				require.Equal(t, c.asked, ch.fetchAccountWhileDue(t, db))
				require.Equal(t, c.all, storetest.TrackedVideos(t, o))
				db.Clock.Advance(25 * time.Hour)
				require.Equal(t, []int{0}, ch.fetchAccountWhileDue(t, db), "the next fetch must request only one page")
				require.Equal(t, c.all, storetest.TrackedVideos(t, o))
				storetest.RequireConsistent(t, db, o)
			})
		})
	}
}

// If an account publishes hardly any videos, but many photos, no fetch must request more than one of the longer
// lists.
func TestBackfill_requestsFewLongerListsOfAnAccountWithHardlyAnyVideos(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reachesBack bool  // true if the listed photos are older than the last complete list
		asked       []int // the lengths of the lists that each daily fetch requests
	}{
		"photos that reach back to the last complete list": {true, []int{0}},
		"photos without upload times":                      {false, []int{0, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				o, ch := storetest.NewOrg(t, db), channel{}
				ch.uploadVideos(t, db, 2)
				storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, storetest.AccountURL))
				for day := range 3 {
					var asked []int
					for claims := storetest.Claim(t, db, link.TikTok, "account"); len(claims) > 0; claims = storetest.Claim(t, db, link.TikTok, "account") {
						target := claims[0].Targets[0]
						asked = append(asked, target.Depth)
						require.Less(t, len(asked), 5)
						facts := storetest.ListedAccount(ch.videos)
						facts.ListContinues = true
						if c.reachesBack {
							facts.CompleteSince = new(store.InstantOf(db.Clock.Now().Add(-2 * 24 * time.Hour)))
						}
						require.NoError(t, db.Acknowledge(t.Context(), claims[0], claims[0].At, []ingest.Outcome{storetest.AccountOutcome(db, target, facts)}))
						db.Clock.Advance(time.Second)
					}
					if day > 0 {
						require.Equal(t, c.asked, asked)
					}
					db.Clock.Advance(25 * time.Hour)
				}
			})
		})
	}
}

func TestBackfill_makesATargetActiveBeforeItsLongerListIsFetched(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, ch := storetest.NewOrg(t, db), channel{pageSize: 20, maxListed: 5000}
		ch.uploadVideos(t, db, 40)
		storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		ch.fetchAccountWhileDue(t, db)
		db.Exec(t, "UPDATE fetch_targets SET state = 'gone', attempts = 3, refused_as = 'gone', refusals = 3 WHERE kind = 'account'")
		db.Clock.Advance(2 * week)
		ch.uploadVideos(t, db, 28)
		c := storetest.ClaimOne(t, db, link.TikTok, "account")
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], storetest.ListedAccount(ch.videos[:20]))}))
		next := storetest.ClaimOne(t, db, link.TikTok, "account").Targets[0]
		require.Equal(t, 200, next.Depth)
		require.Equal(t, queue.StateActive, next.State)
		require.Zero(t, next.Attempts)
		require.Zero(t, next.Refusals)
	})
}

func TestBackfill_requestsAListAgainThatTheBudgetEnded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, ch := storetest.NewOrg(t, db), channel{pageSize: 20, maxListed: 5000, tellsEnd: true}
		ch.uploadVideos(t, db, 40)
		storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		ch.fetchAccountWhileDue(t, db)
		complete := *storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).DiscoveredAt
		db.Clock.Advance(2 * week)
		ch.uploadVideos(t, db, 150)
		ch.budgetEnd = 100
		require.Equal(t, []int{0, 200}, ch.fetchAccountWhileDue(t, db))
		require.Equal(t, 130, storetest.TrackedVideos(t, o))
		require.Equal(t, complete, *storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).DiscoveredAt, "a list that the budget ended must not set discovered_at")
		ch.budgetEnd = 0
		db.Clock.Advance(25 * time.Hour)
		require.Equal(t, []int{0, 200}, ch.fetchAccountWhileDue(t, db), "the next fetch must request the longer list again")
		require.Equal(t, 180, storetest.TrackedVideos(t, o))
		db.Clock.Advance(25 * time.Hour)
		require.Equal(t, []int{0}, ch.fetchAccountWhileDue(t, db))
	})
}

func TestBackfill_requestsTheFirstListAgainThatTheBudgetEnded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, ch := storetest.NewOrg(t, db), channel{pageSize: 20, maxListed: 5000, budgetEnd: 100}
		ch.uploadVideos(t, db, 180)
		storetest.Follow(t, o, store.TrackLatest200, storetest.ParseLink(t, storetest.AccountURL))
		require.Equal(t, []int{200}, ch.fetchAccountWhileDue(t, db))
		require.Equal(t, 100, storetest.TrackedVideos(t, o))
		require.Nil(t, storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).DiscoveredAt, "a list that the budget ended must not set discovered_at")
		stopped := storetest.VideoLink(t, 180)
		storetest.StopVideos(t, o, stopped)
		ch.budgetEnd = 0
		db.Clock.Advance(25 * time.Hour)
		require.Equal(t, []int{0, 200}, ch.fetchAccountWhileDue(t, db), "the next fetch must request the first list again")
		require.Equal(t, 179, storetest.TrackedVideos(t, o), "a video that was stopped after the first list must stay stopped")
		db.Clock.Advance(25 * time.Hour)
		require.Equal(t, []int{0}, ch.fetchAccountWhileDue(t, db))
		storetest.RequireConsistent(t, db, o)
	})
}

func TestBackfill_requestsAListThatIsLongerThanTheBudgetOnlyTwice(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, ch := storetest.NewOrg(t, db), channel{pageSize: 20, maxListed: 5000, budgetEnd: 100}
		ch.uploadVideos(t, db, 180)
		storetest.Follow(t, o, store.TrackLatest200, storetest.ParseLink(t, storetest.AccountURL))
		for _, depths := range [][]int{{200}, {0, 200}, {0}} {
			require.Equal(t, depths, ch.fetchAccountWhileDue(t, db))
			db.Clock.Advance(25 * time.Hour)
		}
	})
}

func TestBackfill_keepsResumedVideosStoppedThatAreStoppedBeforeTheListIsComplete(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		account := storetest.ParseLink(t, storetest.AccountURL)
		o, ch := storetest.NewOrg(t, db), channel{pageSize: 20, maxListed: 5000}
		ch.uploadVideos(t, db, 180)
		storetest.Follow(t, o, store.TrackLatest200, account)
		ch.fetchAccountWhileDue(t, db)
		db.Clock.Advance(25 * time.Hour)
		storetest.StopAccounts(t, o, account)
		require.Zero(t, storetest.TrackedVideos(t, o))
		db.Clock.Advance(25 * time.Hour)
		storetest.Follow(t, o, store.TrackLatest200, account)
		db.Exec(t, "UPDATE accounts SET checked_at = NULL") // so the list that the budget ends is requested again
		ch.budgetEnd = 100
		ch.fetchAccountWhileDue(t, db)
		require.Equal(t, 100, storetest.TrackedVideos(t, o))
		storetest.StopVideos(t, o, storetest.VideoLink(t, 180))
		ch.budgetEnd = 0
		db.Clock.Advance(25 * time.Hour)
		ch.fetchAccountWhileDue(t, db)
		require.Equal(t, 179, storetest.TrackedVideos(t, o))
		storetest.RequireConsistent(t, db, o)
	})
}

func TestBackfill_findsNewVideosAfterAnAnswerWithoutAList(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, ch := storetest.NewOrg(t, db), channel{pageSize: 20, maxListed: 5000}
		ch.uploadVideos(t, db, 40)
		storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		ch.fetchAccountWhileDue(t, db)
		complete := *storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).DiscoveredAt
		db.Clock.Advance(week)
		ch.uploadVideos(t, db, 28)
		storetest.DeliverAccount(t, db, storetest.ListedAccount(ch.videos[:20]))
		require.Equal(t, complete, *storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).DiscoveredAt, "an incomplete list must not set discovered_at")

		c := storetest.ClaimOne(t, db, link.TikTok, "account")
		require.Equal(t, 200, c.Targets[0].Depth)
		facts := storetest.ListedAccount(nil)
		facts.Listed = false
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], facts)}))
		db.Clock.Advance(25 * time.Hour)
		require.Equal(t, []int{0, 200}, ch.fetchAccountWhileDue(t, db), "after an answer without a list, the first fetch must request one page, and the second fetch 200 videos")
		require.Equal(t, 58, storetest.TrackedVideos(t, o))
	})
}

func TestBackfill_addsNoOldVideosToOtherOrganisationsIfAnOrganisationStartsTracking(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first, second, ch := storetest.NewOrg(t, db), storetest.NewOrg(t, db), channel{pageSize: 20, maxListed: 5000, undated: true}
		ch.uploadVideos(t, db, 300)
		storetest.Follow(t, first, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		storetest.Follow(t, second, store.TrackNewOnly, storetest.ParseLink(t, storetest.AccountURL))
		ch.fetchAccountWhileDue(t, db)
		storetest.StopAccounts(t, second, storetest.ParseLink(t, storetest.AccountURL))
		db.Clock.Advance(queue.RefreshPause) // after RefreshPause, tracking the account again causes an immediate fetch
		ch.uploadVideos(t, db, 5)
		storetest.Follow(t, second, store.TrackLatest200, storetest.ParseLink(t, storetest.AccountURL))
		require.Equal(t, []int{200}, ch.fetchAccountWhileDue(t, db), "one list of videos must be stored for both organisations")
		require.Equal(t, 35, storetest.TrackedVideos(t, first))
		require.Equal(t, 200, storetest.TrackedVideos(t, second))
	})
}
