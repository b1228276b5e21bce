package ingest_test

import (
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

// computeSums computes the organisation's totals from the organisation's lists of videos and accounts.
func computeSums(t *testing.T, o *store.Org, day store.Date) store.OrganisationPoint {
	t.Helper()
	sum := store.OrganisationPoint{Day: day}
	add := func(to **int64, n *int64) {
		switch {
		case *to == nil:
			*to = n
		case n != nil:
			*to = new(**to + *n)
		}
	}
	q := storetest.OrderedBy("created_at", false)
	q.IncludeRemoved = true
	for _, v := range storetest.ListVideos(t, o, q).Rows {
		add(&sum.Views, v.Latest.Views)
		add(&sum.Likes, v.Latest.Likes)
		add(&sum.Comments, v.Latest.Comments)
		add(&sum.Shares, v.Latest.Shares)
		add(&sum.Bookmarks, v.Latest.Bookmarks)
		if !v.Removed {
			sum.Videos++
		}
		if v.UploadedAt != nil && *v.UploadedAt == day {
			sum.Uploads++
		}
	}
	page, err := o.ListAccounts(t.Context(), store.AccountQuery{IncludeRemoved: true, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 100}})
	require.NoError(t, err)
	for _, a := range page.Rows {
		add(&sum.Followers, a.LatestFollowersCount)
		add(&sum.Following, a.LatestFollowingCount)
		if a.Tracked {
			sum.Accounts++
		}
	}
	return sum
}

// organisationDay returns the organisation's point of today, without ViewsGained.
func organisationDay(t *testing.T, db *storetest.DB, o *store.Org) store.OrganisationPoint {
	t.Helper()
	points, err := o.OrganisationHistory(t.Context(), storetest.Today(db), storetest.Today(db))
	require.NoError(t, err)
	require.Len(t, points, 1)
	points[0].ViewsGained = nil
	return points[0]
}

// requireGains requires that the gains of all days together are the latest views minus the views of the first day of each video.
func requireGains(t *testing.T, db *storetest.DB, o *store.Org, first, last store.Date) {
	t.Helper()
	points, err := o.OrganisationHistory(t.Context(), first, last)
	require.NoError(t, err)
	var gained int64
	for _, p := range points {
		if p.ViewsGained != nil {
			gained += *p.ViewsGained
		}
	}
	const ofVideos = `SELECT CAST(COALESCE(SUM(v.latest_views - p.views), 0) AS bigint) FROM videos v JOIN snapshots_daily p ON p.organisation_id = v.organisation_id AND p.video_id = v.id
 WHERE v.organisation_id = ? AND p.day = (SELECT MIN(d.day) FROM snapshots_daily d WHERE d.organisation_id = v.organisation_id AND d.video_id = v.id AND d.views IS NOT NULL)`
	require.Equal(t, storetest.Column[int64](t, db, ofVideos, o.ID())[0], gained)
}

func TestOrganisationTotals_areTheSumsOfVideosAndAccounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		next := 0
		rapid.Check(t, func(rt *rapid.T) {
			o, links, begin := storetest.NewOrg(t, db), storetest.VideoLinksFrom(t, next, 6), storetest.Today(db)
			next += len(links)
			storetest.Track(t, o, links...)
			some := func() []link.Link {
				return rapid.SliceOfNDistinct(rapid.SampledFrom(links), 1, len(links), func(l link.Link) string { return l.ID }).Draw(rt, "links")
			}
			for range rapid.IntRange(1, 8).Draw(rt, "steps") {
				db.Clock.Advance(time.Duration(rapid.IntRange(1, 30).Draw(rt, "hours")) * time.Hour)
				switch rapid.IntRange(0, 3).Draw(rt, "step") {
				case 0:
					storetest.Track(t, o, some()...)
				case 1:
					ids, err := o.TrackedVideoIDs(t.Context(), some())
					require.NoError(t, err)
					_, err = o.StopVideos(t.Context(), ids)
					require.NoError(t, err)
				default:
					facts := map[link.Link]ingest.VideoFacts{}
					for _, l := range some() {
						facts[l] = ingest.VideoFacts{Views: randomCount(rt, "views", 1000), Likes: randomCount(rt, "likes", 100), Comments: randomCount(rt, "comments", 10),
							Shares: randomCount(rt, "shares", 10), Bookmarks: randomCount(rt, "bookmarks", 10)}
					}
					storetest.Measure(t, db, db.Clock.Now(), facts)
				}
			}
			storetest.Track(t, o, links...)
			db.Clock.Advance(time.Hour)
			storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{links[0]: storetest.Views(1)})
			require.Equal(rt, computeSums(t, o, storetest.Today(db)), organisationDay(t, db, o))
			requireGains(t, db, o, begin, storetest.Today(db))
		})
	})
}

func TestOrganisationHistory_keepsTheLastValuesOfEachDay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		first := storetest.Today(db)
		uploaded := db.Clock.Now()
		storetest.Track(t, o, storetest.VideoLinks(t, 2)...)
		storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, "https://www.tiktok.com/@someone"))
		storetest.SaveFactsForDueVideos(t, db, link.TikTok, func(queue.Target) ingest.VideoFacts {
			return ingest.VideoFacts{Views: new(int64(10)), UploadedAt: &uploaded}
		})
		storetest.DeliverAccount(t, db, ingest.AccountFacts{Username: new("someone"), Followers: new(int64(100)), Following: new(int64(5))})
		db.Clock.Advance(48 * time.Hour)
		storetest.Track(t, o, storetest.VideoLink(t, 9))
		storetest.StopVideos(t, o, storetest.VideoLink(t, 0))
		storetest.SaveFactsForDueVideos(t, db, link.TikTok, func(queue.Target) ingest.VideoFacts { return storetest.Views(20) })
		storetest.DeliverAccount(t, db, ingest.AccountFacts{Username: new("someone"), Followers: new(int64(90))})

		points, err := o.OrganisationHistory(t.Context(), first-1, first+30)
		require.NoError(t, err)
		require.Equal(t, []store.OrganisationPoint{
			{Day: first + 2, Accounts: 1, Videos: 2, Followers: new(int64(90)), Following: new(int64(5)), Counts: store.Counts{Views: new(int64(50))}, ViewsGained: new(int64(10))},
			{Day: first, Accounts: 1, Videos: 2, Uploads: 2, Followers: new(int64(100)), Following: new(int64(5)), Counts: store.Counts{Views: new(int64(20))}},
		}, points, "the newest day must come first, and a day without a fetch must have no point")
		points, err = o.OrganisationHistory(t.Context(), first+1, first+1)
		require.NoError(t, err)
		require.Equal(t, []store.OrganisationPoint{}, points)
	})
}

// Requirements in docs/coverage.md: 4-12
func TestOrganisationHistory_leavesSumsOfUnknownCountsNull(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 0)
		day := storetest.Today(db)
		storetest.Track(t, o, l)
		storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, "https://www.tiktok.com/@someone"))
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: {Likes: new(int64(0)), Comments: new(int64(3))}})
		want := store.OrganisationPoint{Day: day, Accounts: 1, Videos: 1, Counts: store.Counts{Likes: new(int64(0)), Comments: new(int64(3))}}
		require.Equal(t, want, organisationDay(t, db, o))
		storetest.DeliverAccount(t, db, ingest.AccountFacts{Username: new("someone"), Followers: new(int64(0))})
		want.Followers = new(int64(0))
		require.Equal(t, want, organisationDay(t, db, o))

		db.Clock.Advance(24 * time.Hour)
		storetest.StopVideos(t, o, l)
		want.Day, want.Videos = day+1, 0
		require.Equal(t, want, organisationDay(t, db, o), "the sums must include the counts of stopped videos")
	})
}

func TestOrganisationHistory_hasTheUploadsOfDaysWithoutTotals(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		first, uploads := storetest.Today(db), 0
		fetch := func(o *store.Org, daysAgo int) {
			uploaded := db.Clock.Now().AddDate(0, 0, -daysAgo)
			storetest.Track(t, o, storetest.VideoLink(t, uploads))
			uploads++
			storetest.SaveFactsForDueVideos(t, db, link.TikTok, func(target queue.Target) ingest.VideoFacts {
				facts := ingest.VideoFacts{Views: new(int64(10))}
				if target.ExternalID == storetest.VideoLink(t, uploads-1).ID {
					facts.UploadedAt = &uploaded
				}
				return facts
			})
		}
		fetch(o, 9)
		fetch(o, 9)
		fetch(o, 0)
		fetch(other, 8)
		db.Clock.Advance(4 * 24 * time.Hour)
		fetch(o, 2)

		points, err := o.OrganisationHistory(t.Context(), first-9, first+30)
		require.NoError(t, err)
		require.Equal(t, []store.OrganisationPoint{
			{Day: first + 4, Videos: 4, Counts: store.Counts{Views: new(int64(40))}, ViewsGained: new(int64(0))},
			{Day: first + 2, Uploads: 1, UploadsOnly: true},
			{Day: first, Videos: 3, Uploads: 1, Counts: store.Counts{Views: new(int64(30))}},
			{Day: first - 9, Uploads: 2, UploadsOnly: true},
		}, points)
		points, err = o.OrganisationHistory(t.Context(), first-8, first+1)
		require.NoError(t, err)
		require.Equal(t, []store.OrganisationPoint{{Day: first, Videos: 3, Uploads: 1, Counts: store.Counts{Views: new(int64(30))}}}, points)
	})
}

// Counts that were fetched before midnight can be written after midnight. They change the totals of
// the previous day, unless counts of the new day were written first.
func TestHistory_keepsThePointOfAnEndedDayAfterAFetchOfTheNextDay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		first := storetest.Today(db)
		storetest.Track(t, o, storetest.VideoLinks(t, 2)...)
		evening := db.Clock.Now().Truncate(24 * time.Hour).Add(23*time.Hour + 59*time.Minute)
		history := func() (views []int64, ofAccount []int64) {
			t.Helper()
			points, err := o.OrganisationHistory(t.Context(), first, first+1)
			require.NoError(t, err)
			for _, p := range points {
				views = append(views, *p.Views)
			}
			accountPoints, err := o.AccountHistory(t.Context(), store.Ref{Link: storetest.ParseLink(t, "https://www.tiktok.com/@someone")}, first, first+1)
			require.NoError(t, err)
			for _, p := range accountPoints {
				ofAccount = append(ofAccount, *p.Views)
			}
			return views, ofAccount
		}
		requireViews := func(want ...int64) {
			t.Helper()
			ofOrganisation, ofAccount := history()
			require.Equal(t, want, ofOrganisation)
			require.Equal(t, want, ofAccount)
		}
		storetest.Measure(t, db, evening, map[link.Link]ingest.VideoFacts{storetest.VideoLink(t, 0): storetest.Views(10)})
		db.Clock.Set(evening.Add(2 * time.Minute))
		storetest.Measure(t, db, evening.Add(time.Second), map[link.Link]ingest.VideoFacts{storetest.VideoLink(t, 1): storetest.Views(100)})
		requireViews(110)
		storetest.Measure(t, db, evening.Add(90*time.Second), map[link.Link]ingest.VideoFacts{storetest.VideoLink(t, 0): storetest.Views(1000)})
		requireViews(1100, 110)
		storetest.Measure(t, db, evening.Add(2*time.Second), map[link.Link]ingest.VideoFacts{storetest.VideoLink(t, 1): storetest.Views(200)})
		requireViews(1200, 110)
		require.Equal(t, int64(200), *recentPoints(t, db, o, storetest.VideoLink(t, 1))[0].Views)
		require.Equal(t, first, recentPoints(t, db, o, storetest.VideoLink(t, 1))[0].Day)
		points, err := o.AccountHistory(t.Context(), store.Ref{Link: storetest.ParseLink(t, "https://www.tiktok.com/@someone")}, first+1, first+1)
		require.NoError(t, err)
		require.Equal(t, store.InstantOf(evening.Add(90*time.Second)), *points[0].FetchedAt, "the point must have the time of the newest fetch")
	})
}

func TestAccountHistory_keepsTheLastValuesOfEachDay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, "https://www.tiktok.com/@someone")
		first, started := storetest.Today(db), db.Clock.Now()
		storetest.Follow(t, o, store.TrackNewOnly, l)
		storetest.Track(t, o, storetest.VideoLink(t, 1))
		storetest.Deliver(t, db, link.TikTok, storetest.Views(10))
		storetest.DeliverAccount(t, db, ingest.AccountFacts{Username: new("someone"), Followers: new(int64(100))})
		db.Clock.Advance(24 * time.Hour)
		storetest.Deliver(t, db, link.TikTok, ingest.VideoFacts{Views: new(int64(15)), Likes: new(int64(2))})

		points, err := o.AccountHistory(t.Context(), store.Ref{Link: l}, first, first+1)
		require.NoError(t, err)
		provenance := func(quality store.Quality, day int) store.Provenance {
			return store.Provenance{Quality: quality, Source: new("test"), FetchedAt: new(store.InstantOf(started.AddDate(0, 0, day)))}
		}
		require.Equal(t, []store.AccountPoint{
			{Day: first + 1, Followers: new(int64(100)), Videos: 1, Counts: store.Counts{Views: new(int64(15)), Likes: new(int64(2))}, Provenance: provenance(store.QualityMeasured, 1)},
			{Day: first, Followers: new(int64(100)), Videos: 1, Counts: store.Counts{Views: new(int64(10))}, Provenance: provenance(store.QualityMeasured, 0)},
		}, points)

		db.Clock.Advance(24 * time.Hour)
		storetest.Deliver(t, db, link.TikTok, ingest.VideoFacts{Views: new(int64(12)), Likes: new(int64(2))})
		points, err = o.AccountHistory(t.Context(), store.Ref{Link: l}, first+2, first+2)
		require.NoError(t, err)
		require.Equal(t, provenance(store.QualityCorrected, 2), points[0].Provenance, "the quality must be \"corrected\" if the same video has fewer views")
		require.Len(t, points, 1, "the previous point must be used for the comparison, but not returned")

		db.Clock.Advance(24 * time.Hour)
		storetest.StopVideos(t, o, storetest.VideoLink(t, 1))
		points, err = o.AccountHistory(t.Context(), store.Ref{Link: l}, first+3, first+3)
		require.NoError(t, err)
		require.Equal(t, store.Provenance{Quality: store.QualityMeasured}, points[0].Provenance, "the quality must be \"measured\" if the views are lower because a video was stopped")
		_, err = o.AccountHistory(t.Context(), store.Ref{ID: store.NewID()}, first, first)
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestStatistics_countVideosAndAccountsByPlatform(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		none, err := o.VideoStatistics(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.Statistics{ByPlatform: map[link.Platform]int64{}, ByStatus: map[queue.FetchStatus]int64{}}, none)

		storetest.Track(t, o, append(storetest.VideoLinks(t, 3), storetest.ParseLink(t, storetest.YouTubeURL), storetest.ParseLink(t, "https://www.instagram.com/reel/CabcdefghiJ/"))...)
		storetest.StopVideos(t, o, storetest.VideoLink(t, 0), storetest.ParseLink(t, storetest.YouTubeURL))
		videos, err := o.VideoStatistics(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.Statistics{Total: 3, Removed: 2, ByPlatform: map[link.Platform]int64{link.TikTok: 2, link.Instagram: 1},
			ByStatus: map[queue.FetchStatus]int64{queue.FetchPending: 3, queue.FetchStopped: 2}}, videos)

		storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, "https://www.tiktok.com/@other"), storetest.ParseLink(t, "https://www.instagram.com/gone/"))
		storetest.StopAccounts(t, o, storetest.ParseLink(t, "https://www.instagram.com/gone/"))
		accounts, err := o.AccountStatistics(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.Statistics{Total: 1, Removed: 1, ByPlatform: map[link.Platform]int64{link.TikTok: 1},
			ByStatus: map[queue.FetchStatus]int64{queue.FetchPending: 1, queue.FetchStopped: 1}}, accounts, "@someone must not be counted, because this account is only linked")
	})
}

func TestOrganisationHistory_movesAnUploadToTheCorrectedDay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, first := storetest.NewOrg(t, db), storetest.Today(db)
		fetch := func(daysAgo ...int) {
			now := db.Clock.Now()
			storetest.SaveFactsForDueVideos(t, db, link.TikTok, func(target queue.Target) ingest.VideoFacts {
				uploaded := now.AddDate(0, 0, -daysAgo[0])
				if target.ExternalID == storetest.VideoLink(t, 2).ID {
					uploaded = now.AddDate(0, 0, -daysAgo[1])
				}
				return ingest.VideoFacts{Views: new(int64(10)), UploadedAt: &uploaded}
			})
		}
		uploads := func() map[int]int64 {
			points, err := o.OrganisationHistory(t.Context(), first-30, first-1)
			require.NoError(t, err)
			days := map[int]int64{}
			for _, p := range points {
				days[int(first-p.Day)] = p.Uploads
			}
			return days
		}
		storetest.Track(t, o, storetest.VideoLink(t, 1), storetest.VideoLink(t, 2))
		fetch(9, 9)
		require.Equal(t, map[int]int64{9: 2}, uploads())
		db.Clock.Advance(24 * time.Hour)
		fetch(10, 6)
		require.Equal(t, map[int]int64{9: 1, 5: 1}, uploads())
		db.Clock.Advance(24 * time.Hour)
		fetch(7, 7)
		require.Equal(t, map[int]int64{5: 2}, uploads(), "a day without uploads must have no point")
	})
}
