package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// sumsOf adds up what the lists show, one by one.
func sumsOf(t *testing.T, o *store.Org, day store.Date) store.OrganisationPoint {
	t.Helper()
	sum := store.OrganisationPoint{Day: day}
	add := func(to *int64, n *int64) {
		if n != nil {
			*to += *n
		}
	}
	q := all("created_at", false)
	q.IncludeRemoved = true
	for _, v := range list(t, o, q).Videos {
		add(&sum.Views, v.LatestViews)
		add(&sum.Likes, v.LatestLikes)
		add(&sum.Comments, v.LatestComments)
		add(&sum.Shares, v.LatestShares)
		add(&sum.Bookmarks, v.LatestBookmarks)
		if !v.Removed {
			sum.Videos++
		}
		if v.UploadedAt != nil && *v.UploadedAt == day {
			sum.Uploads++
		}
	}
	page, err := o.Accounts(t.Context(), store.AccountQuery{IncludeRemoved: true, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 100}})
	require.NoError(t, err)
	for _, a := range page.Accounts {
		add(&sum.Followers, a.LatestFollowersCount)
		add(&sum.Following, a.LatestFollowingCount)
		if a.Tracked {
			sum.Accounts++
		}
	}
	return sum
}

func organisationDay(t *testing.T, db *storetest.DB, o *store.Org) store.OrganisationPoint {
	t.Helper()
	points, err := o.OrganisationHistory(t.Context(), today(db), today(db))
	require.NoError(t, err)
	require.Len(t, points, 1)
	return points[0]
}

func TestTotals_areTheSumsOfWhatIsThere(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		next := 0
		rapid.Check(t, func(rt *rapid.T) {
			o, links := newOrg(t, db), clipsFrom(t, next, 6)
			next += len(links)
			track(t, o, links...)
			some := func() []link.Link {
				return rapid.SliceOfNDistinct(rapid.SampledFrom(links), 1, len(links), func(l link.Link) string { return l.ID }).Draw(rt, "links")
			}
			for range rapid.IntRange(1, 8).Draw(rt, "steps") {
				db.Clock.Advance(time.Duration(rapid.IntRange(1, 30).Draw(rt, "hours")) * time.Hour)
				switch rapid.IntRange(0, 3).Draw(rt, "step") {
				case 0:
					track(t, o, some()...)
				case 1:
					var refs []store.VideoRef
					for _, l := range some() {
						refs = append(refs, store.VideoRef{Link: l})
					}
					_, err := o.StopVideos(t.Context(), refs, false)
					require.NoError(t, err)
				default:
					facts := map[link.Link]store.VideoFacts{}
					for _, l := range some() {
						facts[l] = store.VideoFacts{Views: maybe(rt, "views", 1000), Likes: maybe(rt, "likes", 100), Comments: maybe(rt, "comments", 10),
							Shares: maybe(rt, "shares", 10), Bookmarks: maybe(rt, "bookmarks", 10)}
					}
					measure(t, db, db.Clock.Now(), facts)
				}
			}
			track(t, o, links...)
			db.Clock.Advance(time.Hour)
			measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{links[0]: views(1)})
			require.Equal(rt, sumsOf(t, o, today(db)), organisationDay(t, db, o))
		})
	})
}

func TestOrganisationHistory_keepsEachDayAsItEnded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		first := today(db)
		uploaded := db.Clock.Now()
		track(t, o, clips(t, 2)...)
		follow(t, o, store.TrackNewOnly, parse(t, "https://www.tiktok.com/@someone"))
		deliverBy(t, db, link.TikTok, func(store.Target) store.VideoFacts {
			return store.VideoFacts{Views: new(int64(10)), UploadedAt: &uploaded}
		})
		deliverAccount(t, db, store.AccountFacts{Username: new("someone"), Followers: new(int64(100)), Following: new(int64(5))})
		db.Clock.Advance(48 * time.Hour)
		track(t, o, clip(t, 9))
		stop(t, o, clip(t, 0))
		deliverBy(t, db, link.TikTok, func(store.Target) store.VideoFacts { return views(20) })
		deliverAccount(t, db, store.AccountFacts{Username: new("someone"), Followers: new(int64(90))})

		points, err := o.OrganisationHistory(t.Context(), first-1, first+30)
		require.NoError(t, err)
		require.Equal(t, []store.OrganisationPoint{
			{Day: first + 2, Accounts: 1, Videos: 2, Followers: 90, Following: 5, Views: 50},
			{Day: first, Accounts: 1, Videos: 2, Uploads: 2, Followers: 100, Following: 5, Views: 20},
		}, points, "the newest first; a day on which nothing was fetched has no point")
		points, err = o.OrganisationHistory(t.Context(), first+1, first+1)
		require.NoError(t, err)
		require.Equal(t, []store.OrganisationPoint{}, points)
	})
}

// An answer of before midnight that is written after it belongs to the day before, unless that day's sums would hold what has come since.
func TestHistory_keepsADayAsItEndedWhateverIsWrittenLater(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		first := today(db)
		track(t, o, clips(t, 2)...)
		evening := db.Clock.Now().Truncate(24 * time.Hour).Add(23*time.Hour + 59*time.Minute)
		history := func() (views []int64, ofAccount []int64) {
			t.Helper()
			points, err := o.OrganisationHistory(t.Context(), first, first+1)
			require.NoError(t, err)
			for _, p := range points {
				views = append(views, p.Views)
			}
			accountPoints, err := o.AccountHistory(t.Context(), store.AccountRef{Link: parse(t, "https://www.tiktok.com/@someone")}, first, first+1)
			require.NoError(t, err)
			for _, p := range accountPoints {
				ofAccount = append(ofAccount, *p.Views)
			}
			return views, ofAccount
		}
		is := func(want ...int64) {
			t.Helper()
			ofOrganisation, ofAccount := history()
			require.Equal(t, want, ofOrganisation)
			require.Equal(t, want, ofAccount)
		}
		measure(t, db, evening, map[link.Link]store.VideoFacts{clip(t, 0): views(10)})
		db.Clock.Set(evening.Add(2 * time.Minute))
		measure(t, db, evening.Add(time.Second), map[link.Link]store.VideoFacts{clip(t, 1): views(100)})
		is(110)
		measure(t, db, evening.Add(90*time.Second), map[link.Link]store.VideoFacts{clip(t, 0): views(1000)})
		is(1100, 110)
		measure(t, db, evening.Add(2*time.Second), map[link.Link]store.VideoFacts{clip(t, 1): views(200)})
		is(1200, 110)
		require.Equal(t, int64(200), *points(t, db, o, clip(t, 1))[0].Views)
		require.Equal(t, first, points(t, db, o, clip(t, 1))[0].Day)
		points, err := o.AccountHistory(t.Context(), store.AccountRef{Link: parse(t, "https://www.tiktok.com/@someone")}, first+1, first+1)
		require.NoError(t, err)
		require.Equal(t, store.InstantOf(evening.Add(90*time.Second)), *points[0].FetchedAt, "the newest")
	})
}

func TestAccountHistory_keepsEachDayAsItEnded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), parse(t, "https://www.tiktok.com/@someone")
		first, started := today(db), db.Clock.Now()
		follow(t, o, store.TrackNewOnly, l)
		track(t, o, clip(t, 1))
		deliver(t, db, link.TikTok, views(10))
		deliverAccount(t, db, store.AccountFacts{Username: new("someone"), Followers: new(int64(100))})
		db.Clock.Advance(24 * time.Hour)
		deliver(t, db, link.TikTok, store.VideoFacts{Views: new(int64(15)), Likes: new(int64(2))})

		points, err := o.AccountHistory(t.Context(), store.AccountRef{Link: l}, first, first+1)
		require.NoError(t, err)
		of := func(quality store.Quality, day int) store.Provenance {
			return store.Provenance{Quality: quality, Source: new("test"), FetchedAt: new(store.InstantOf(started.AddDate(0, 0, day)))}
		}
		require.Equal(t, []store.AccountPoint{
			{Day: first + 1, Followers: new(int64(100)), Videos: 1, Counts: store.Counts{Views: new(int64(15)), Likes: new(int64(2))}, Provenance: of(store.QualityMeasured, 1)},
			{Day: first, Followers: new(int64(100)), Videos: 1, Counts: store.Counts{Views: new(int64(10))}, Provenance: of(store.QualityMeasured, 0)},
		}, points)

		db.Clock.Advance(24 * time.Hour)
		deliver(t, db, link.TikTok, store.VideoFacts{Views: new(int64(12)), Likes: new(int64(2))})
		points, err = o.AccountHistory(t.Context(), store.AccountRef{Link: l}, first+2, first+2)
		require.NoError(t, err)
		require.Equal(t, of(store.QualityCorrected, 2), points[0].Provenance, "the same video has fewer views")
		require.Len(t, points, 1, "the point that it is compared with lies before the range")

		db.Clock.Advance(24 * time.Hour)
		stop(t, o, clip(t, 1))
		points, err = o.AccountHistory(t.Context(), store.AccountRef{Link: l}, first+3, first+3)
		require.NoError(t, err)
		require.Equal(t, store.Provenance{Quality: store.QualityMeasured}, points[0].Provenance, "there are fewer videos, and nothing was fetched")
		_, err = o.AccountHistory(t.Context(), store.AccountRef{ID: store.NewID()}, first, first)
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestStatistics_countByPlatform(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		none, err := o.VideoStatistics(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.Statistics{ByPlatform: map[link.Platform]int64{}}, none)

		track(t, o, append(clips(t, 3), parse(t, short), parse(t, "https://www.instagram.com/reel/CabcdefghiJ/"))...)
		stop(t, o, clip(t, 0), parse(t, short))
		videos, err := o.VideoStatistics(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.Statistics{Total: 3, Removed: 2, ByPlatform: map[link.Platform]int64{link.TikTok: 2, link.Instagram: 1}}, videos)

		follow(t, o, store.TrackNewOnly, parse(t, "https://www.tiktok.com/@other"), parse(t, "https://www.instagram.com/gone/"))
		_, err = o.StopAccounts(t.Context(), []store.AccountRef{{Link: parse(t, "https://www.instagram.com/gone/")}}, true)
		require.NoError(t, err)
		accounts, err := o.AccountStatistics(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.Statistics{Total: 1, Removed: 1, ByPlatform: map[link.Platform]int64{link.TikTok: 1}}, accounts, "@someone is linked alone")
	})
}
