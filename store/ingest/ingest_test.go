package ingest_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// recentPoints returns the stored points of a video from the last 30 days, the newest first. It removes the provenance from the points.
func recentPoints(t *testing.T, db *storetest.DB, o *store.Org, l link.Link) []store.Point {
	t.Helper()
	points, err := o.History(t.Context(), store.Ref{Link: l}, storetest.Today(db)-30, storetest.Today(db))
	require.NoError(t, err)
	return storetest.WithoutProvenance(points)
}

// Requirements in docs/coverage.md: 2.2-10, 2.2-11, 2.2-12, 2.2-13, 2.2-14, 2.2-15, 2.2-16, 2.2-17, 2.2-18, 2.2-19, 2.2-22, 2.2-23, 2.2-24
func TestAcknowledge_storesEveryValueThatTheSourceReported(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, "https://www.tiktok.com/@someone/video/7301234567890123456")
		storetest.Track(t, o, l)
		before := storetest.VideoOf(t, o, l)
		facts := ingest.VideoFacts{Views: new(int64(1000)), Likes: new(int64(100)), Comments: new(int64(10)), Bookmarks: new(int64(1)),
			Title: new("A #Dog and a #cat 🐶"), Username: new("someone"), AccountID: new("42"), AccountName: new("Some One"),
			UploadedAt: new(time.Date(2023, 11, 14, 23, 59, 59, 0, time.UTC)), LengthSeconds: new(12.5), SongName: new("A song"),
			SongLink: new("https://www.tiktok.com/music/a-1"), ThumbnailURL: new("https://p16.tiktokcdn.com/1.jpeg"), NotSafe: new(true), Private: new(true), HiddenStats: new(true), IsAd: new(true),
			ShopAd: new(true), ShopProductID: new("p1")}
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, facts))

		v := storetest.VideoOf(t, o, l)
		now := store.InstantOf(db.Clock.Now())
		want := before
		want.Latest.Views, want.Latest.Likes, want.Latest.Comments, want.Latest.Bookmarks = new(int64(1000)), new(int64(100)), new(int64(10)), new(int64(1))
		want.LatestEngagement, want.LatestUpdatedAt = new(int64(111)), &now
		want.Title, want.UploadedAt, want.VideoLength = "A #Dog and a #cat 🐶", new(store.DateOf(*facts.UploadedAt)), new("12.5")
		want.SongName, want.SongLink, want.ThumbnailURL, want.AdProductIDShop = facts.SongName, facts.SongLink, facts.ThumbnailURL, facts.ShopProductID
		want.NotSafe, want.Private, want.HiddenStats, want.AdIsAd, want.AdInfoShop = true, true, true, true, true
		want.OutlierMultiplier = new(1.0)
		want.FetchState = store.FetchState{FetchStatus: queue.FetchOK, LastAttemptAt: &now, NextFetchAt: new(now.Add(24 * time.Hour)), HasNumbers: true}
		require.Equal(t, want, v, "shares must stay null, because the source did not report them")

		a := storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@someone"))
		require.Equal(t, "42", *a.ExternalID)
		require.Equal(t, "Some One", *a.Name)
		require.Equal(t, []store.Point{{Day: storetest.Today(db), Counts: store.Counts{Views: facts.Views, Likes: facts.Likes, Comments: facts.Comments, Bookmarks: facts.Bookmarks}}},
			recentPoints(t, db, o, l))
	})
}

// The first rounded count is lower than the exact count of the day before. The second rounded count is higher
// than the exact count of the next day.
//
// Requirements in docs/coverage.md: 11.12-04
func TestAcknowledge_marksPointsWithRoundedCounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.CreatePartitions(t, db, 200)
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, "https://www.tiktok.com/@someone/video/7301234567890123456")
		storetest.Track(t, o, l)
		first := storetest.Today(db)
		rounded := store.Counts{Views: new(int64(10_000))}
		for _, f := range []ingest.VideoFacts{
			{Views: new(int64(573_942))}, {Views: new(int64(573_900)), RoundedFrom: rounded}, {Views: new(int64(574_400)), RoundedFrom: rounded},
			{Views: new(int64(574_380))}, {Views: new(int64(574_370))},
		} {
			require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, f))
			db.Clock.Advance(24 * time.Hour)
		}
		for from := first; from < first+5; from++ {
			got, err := o.History(t.Context(), store.Ref{Link: l}, from, first+4)
			require.NoError(t, err)
			want := []store.Quality{store.QualityCorrected, store.QualityMeasured, store.QualityRounded, store.QualityRounded, store.QualityMeasured}
			require.Len(t, got, int(first+5-from))
			for i, p := range got {
				require.Equal(t, want[i], p.Quality, "the point of %s in a history that begins on %s", p.Day, from)
				require.Equal(t, "test", *p.Source)
			}
		}
		exported, err := o.ListPoints(t.Context(), store.PointsQuery{Until: math.MaxInt64, Window: store.Window{Limit: 10}})
		require.NoError(t, err)
		require.Len(t, exported.Rows, 1)
		for i, p := range exported.Rows[0].Points {
			rounded := i == 1 || i == 2
			require.Equal(t, map[bool]store.Quality{true: store.QualityRounded, false: store.QualityMeasured}[rounded], p.Quality, "the exported point of %s", p.Day)
			require.Equal(t, "test", *p.Source)
		}
		require.Len(t, exported.Rows[0].Points, 5)
	})
}

func TestAcknowledge_changesNothingIfAnOutcomeIsWrittenAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLinks(t, 3)...)
		c := storetest.Claim(t, db, link.TikTok, "video")[0]
		var outcomes []ingest.Outcome
		for i, target := range c.Targets {
			outcomes = append(outcomes, storetest.Outcome(db, target, ingest.VideoFacts{Views: new(int64(i * 100)), Likes: new(int64(i)), Title: new("#one #two"),
				Username: new("someone"), AccountID: new("42"), UploadedAt: new(db.Clock.Now())}))
		}
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, outcomes))
		once := storetest.StoredRows(t, db, o)
		require.NotEmpty(t, once["snapshots_daily"])
		for range 2 {
			require.NoError(t, db.Acknowledge(t.Context(), c, c.At, outcomes))
			require.Equal(t, once, storetest.StoredRows(t, db, o))
		}
	})
}

func TestAcknowledge_distinguishesNullFromZero(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLinks(t, 2)...)
		zero, unknown := storetest.VideoLink(t, 0), storetest.VideoLink(t, 1)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{
			zero:    {Views: new(int64(0)), Likes: new(int64(0)), Comments: new(int64(0)), Shares: new(int64(0)), Bookmarks: new(int64(0))},
			unknown: {Title: new("No counts")},
		})
		zeros := store.Counts{Views: new(int64(0)), Likes: new(int64(0)), Comments: new(int64(0)), Shares: new(int64(0)), Bookmarks: new(int64(0))}
		v := storetest.VideoOf(t, o, zero)
		require.Equal(t, v.Latest, zeros)
		require.Zero(t, *v.LatestEngagement)
		require.Equal(t, zeros, recentPoints(t, db, o, zero)[0].Counts)

		v = storetest.VideoOf(t, o, unknown)
		require.Nil(t, v.Latest.Views)
		require.Nil(t, v.LatestEngagement)
		require.NotNil(t, v.LatestUpdatedAt, "the video must count as fetched")
		require.Equal(t, []store.Point{{Day: storetest.Today(db)}}, recentPoints(t, db, o, unknown))
	})
}

func TestAcknowledge_mergesTheCountsOfAllFetchesOfADay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		at := db.Clock.Now()
		storetest.Measure(t, db, at, map[link.Link]ingest.VideoFacts{l: {Views: new(int64(10)), Likes: new(int64(5)), Title: new("Title")}})
		storetest.Measure(t, db, at.Add(time.Hour), map[link.Link]ingest.VideoFacts{l: {Views: new(int64(12)), Shares: new(int64(1))}})
		require.Equal(t, []store.Point{{Day: storetest.Today(db), Counts: store.Counts{Views: new(int64(12)), Likes: new(int64(5)), Shares: new(int64(1))}}}, recentPoints(t, db, o, l))
		require.Equal(t, "Title", storetest.VideoOf(t, o, l).Title, "a value that the source does not report must stay unchanged")

		db.Clock.Advance(24 * time.Hour)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: {Views: new(int64(20))}})
		require.Equal(t, store.Counts{Views: new(int64(20))}, recentPoints(t, db, o, l)[0].Counts, "the new point must not contain the number of likes from the previous day")
		require.EqualValues(t, 5, *storetest.VideoOf(t, o, l).Latest.Likes, "the latest likes must keep the last known value")
	})
}

func TestAcknowledge_ignoresOutcomesOlderThanTheStoredCounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		at := db.Clock.Now()
		storetest.Measure(t, db, at, map[link.Link]ingest.VideoFacts{l: {Views: new(int64(10)), Title: new("New")}})
		before := storetest.StoredRows(t, db, o)
		for _, late := range []time.Duration{time.Microsecond, time.Hour, 24 * time.Hour, 500 * 24 * time.Hour} {
			storetest.Measure(t, db, at.Add(-late), map[link.Link]ingest.VideoFacts{l: {Views: new(int64(9)), Likes: new(int64(9)), Title: new("Old")}})
			require.Equal(t, before, storetest.StoredRows(t, db, o), late)
		}
	})
}

func TestAcknowledge_storesThePointOnTheUTCDayOfTheFetch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		db.Clock.Set(time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)) // the database has no partition for this month yet
		for _, at := range []time.Time{
			time.Date(2024, 2, 28, 23, 59, 59, 999_999_000, time.UTC),
			time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
			time.Date(2024, 3, 1, 1, 0, 0, 0, time.FixedZone("east", 2*3600)), // 29 February, 23:00 UTC
			time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC),
		} {
			storetest.Measure(t, db, at, map[link.Link]ingest.VideoFacts{l: storetest.Views(at.Unix())})
		}
		db.Clock.Set(time.Date(2024, 3, 5, 0, 0, 0, 0, time.UTC))
		var days []string
		for _, p := range recentPoints(t, db, o, l) {
			days = append(days, p.Day.String())
		}
		require.Equal(t, []string{"2024-03-01", "2024-02-29", "2024-02-28"}, days)
		weeks := storetest.Column[store.Date](t, db, "SELECT DISTINCT week FROM snapshots_daily")
		require.Equal(t, []store.Date{store.DateOf(time.Date(2024, 2, 26, 0, 0, 0, 0, time.UTC))}, weeks)
	})
}

func TestAcknowledge_withoutFactsChangesOnlyPrivateAndNotSafe(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.Views(10)})
		want := storetest.VideoOf(t, o, l)
		db.Clock.Advance(time.Hour)
		refused := ingest.Outcome{Target: queue.Target{Platform: link.TikTok, Kind: "video", ExternalID: l.ID}, Private: new(true), NotSafe: new(true), State: "gone"}
		require.NoError(t, db.Acknowledge(t.Context(), queue.Claim{}, store.InstantOf(db.Clock.Now()), []ingest.Outcome{refused}))
		want.Private, want.NotSafe = true, true
		require.Equal(t, want, storetest.VideoOf(t, o, l), "without a successful fetch, the time of the last fetch must stay the same")
		require.Len(t, recentPoints(t, db, o, l), 1)

		refused.Private, refused.NotSafe = nil, nil
		require.NoError(t, db.Acknowledge(t.Context(), queue.Claim{}, store.InstantOf(db.Clock.Now()), []ingest.Outcome{refused}))
		require.Equal(t, want, storetest.VideoOf(t, o, l))
	})
}

func TestAcknowledge_writesOnlyToSubscribedOrganisations(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		one, two, three := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		storetest.Track(t, one, storetest.VideoLinks(t, 2)...)
		storetest.Track(t, two, storetest.VideoLink(t, 1))
		storetest.Track(t, three, storetest.VideoLink(t, 2))
		before := storetest.StoredRows(t, db, three)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{
			storetest.VideoLink(t, 0): {Views: new(int64(5)), AccountID: new("42"), Username: new("someone")},
			storetest.VideoLink(t, 1): {Views: new(int64(6)), AccountID: new("42"), Username: new("someone"), Title: new("#shared")},
		})
		require.EqualValues(t, 5, *storetest.VideoOf(t, one, storetest.VideoLink(t, 0)).Latest.Views)
		require.EqualValues(t, 6, *storetest.VideoOf(t, one, storetest.VideoLink(t, 1)).Latest.Views)
		require.EqualValues(t, 6, *storetest.VideoOf(t, two, storetest.VideoLink(t, 1)).Latest.Views)
		require.NotEqual(t, storetest.VideoOf(t, one, storetest.VideoLink(t, 1)).LinkedAccountID, storetest.VideoOf(t, two, storetest.VideoLink(t, 1)).LinkedAccountID, "each organisation must have its own record of the account")
		require.EqualValues(t, 11, *storetest.AccountByLink(t, one, storetest.ParseLink(t, "https://www.tiktok.com/@someone")).Total.Views)
		require.EqualValues(t, 6, *storetest.AccountByLink(t, two, storetest.ParseLink(t, "https://www.tiktok.com/@someone")).Total.Views)
		require.Equal(t, before, storetest.StoredRows(t, db, three))
	})
}

func TestHashtags_areUpdatedIfTheTitleChanges(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		has := func(tag string) bool {
			t.Helper()
			return storetest.ListVideos(t, o, store.VideoQuery{Hashtag: &tag}).Total == 1
		}
		for i, c := range []struct {
			title    string
			has, not []string
		}{
			{"Look: #Dog#cat, #dog", []string{"dog", "DOG", "#dog", "cat"}, []string{"do", "dogs", "look"}},
			{"Now #Straße and #Grüße_2 #日本語", []string{"straße", "GRÜßE_2", "日本語"}, []string{"dog", "cat", "日本"}},
			{"No tag", nil, []string{"straße", "日本語", "dog"}},
		} {
			storetest.Measure(t, db, db.Clock.Now().Add(time.Duration(i)*time.Second), map[link.Link]ingest.VideoFacts{l: {Title: new(c.title)}})
			for _, tag := range c.has {
				require.True(t, has(tag), "the video with the title %q must be found by the hashtag %q", c.title, tag)
			}
			for _, tag := range c.not {
				require.False(t, has(tag), "the video with the title %q must not be found by the hashtag %q", c.title, tag)
			}
		}
	})
}

// spellings has two spellings of a hashtag that must count as equal.
var spellings = map[string][2]string{
	"composed and decomposed accent": {"caf\u00e9", "cafe\u0301"},
	"final and other sigma":          {"κόσμος", "ΚΌΣΜΟΣ"},
	"Turkish capital I":              {"İzmir", "i\u0307zmir"},
}

func TestSearches_findVideosByEachSpellingOfAWord(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		for name, both := range spellings {
			t.Run(name, func(t *testing.T) {
				o, links := storetest.NewOrg(t, db), storetest.VideoLinks(t, 2)
				storetest.Track(t, o, links...)
				storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{
					links[0]: {Views: new(int64(1)), Title: new("In #" + both[0] + " today")},
					links[1]: {Views: new(int64(2)), Title: new("In #" + both[1] + " today")},
				})
				for _, spelling := range both {
					for _, q := range []store.VideoQuery{{Hashtag: &spelling}, {Words: &spelling}} {
						require.EqualValues(t, 2, storetest.ListVideos(t, o, q).Total, "%+q", spelling)
					}
					c, err := o.CreateCollection(t.Context(), store.NewCollection{Name: "Campaign", Access: store.AccessPrivate, Hashtags: []string{spelling}})
					require.NoError(t, err)
					require.EqualValues(t, 2, storetest.ListVideos(t, o, store.VideoQuery{CollectionID: &c.ID}).Total, "%+q", spelling)
				}
				c, err := o.CreateCollection(t.Context(), store.NewCollection{Name: "Both", Access: store.AccessPrivate, Hashtags: both[:]})
				require.NoError(t, err)
				require.Len(t, c.Hashtags, 1)
				for _, v := range storetest.ListVideos(t, o, store.VideoQuery{}).Rows {
					require.Len(t, v.Labels, 3)
				}
			})
		}
	})
}

// While an installation is upgraded, a program of the older release can still store captions and hashtags that are only in lower case.
func TestAcknowledge_correctsTheHashtagsThatAnOlderReleaseStored(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		facts := map[link.Link]ingest.VideoFacts{l: {Title: new("#Cafe\u0301")}}
		storetest.Measure(t, db, db.Clock.Now(), facts)
		db.Exec(t, "UPDATE videos SET title_folded = ? WHERE organisation_id = ?", "#cafe\u0301", o.ID())
		db.Exec(t, "UPDATE video_hashtags SET tag = ? WHERE organisation_id = ?", "cafe\u0301", o.ID())
		storetest.Measure(t, db, db.Clock.Now().Add(time.Second), facts)
		for _, q := range []store.VideoQuery{{Hashtag: new("caf\u00e9")}, {Words: new("caf\u00e9")}} {
			require.EqualValues(t, 1, storetest.ListVideos(t, o, q).Total)
		}
		require.Equal(t, []string{"caf\u00e9"}, storetest.Column[string](t, db, "SELECT tag FROM video_hashtags WHERE organisation_id = ?", o.ID()))
	})
}

func TestAcknowledge_addsTheAuthorsHandleToTheVideoLink(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		l := storetest.ParseLink(t, "https://m.tiktok.com/v/7301234567890123456.html")
		require.Empty(t, l.Handle)
		storetest.Track(t, o, l)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: {Username: new("someone")}})
		v := storetest.VideoOf(t, o, l)
		require.Equal(t, "https://www.tiktok.com/@someone/video/7301234567890123456", v.Link)
		require.Equal(t, "someone", v.Username)
		require.NotNil(t, v.LinkedAccountID)
	})
}

func TestAcknowledge_runsAsManyStatementsForFiftyVideosAsForOne(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLinks(t, 50)...)
		count := func(n int) int {
			facts := map[link.Link]ingest.VideoFacts{}
			for _, l := range storetest.VideoLinks(t, n) {
				facts[l] = ingest.VideoFacts{Views: new(int64(n)), Title: new("#tag"), Username: new("someone"), AccountID: new("42"), UploadedAt: new(db.Clock.Now())}
			}
			db.Clock.Advance(time.Second)
			db.Guard.Statements()
			storetest.Measure(t, db, db.Clock.Now(), facts)
			return len(db.Guard.Statements())
		}
		count(50) // the first batch creates the account and the hashtags
		one := count(1)
		require.Equal(t, one, count(50))
		require.Less(t, one, 20)
	})
}

func TestAcknowledge_storesCountsThatAreLowerThanBefore(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		for _, n := range []int64{100, 90, 90, 95} {
			require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(n)))
			db.Clock.Advance(24 * time.Hour)
		}
		points, err := o.History(t.Context(), store.Ref{Link: l}, storetest.Today(db)-30, storetest.Today(db))
		require.NoError(t, err)
		var got []int64
		var quality []store.Quality
		for _, p := range points {
			got, quality = append(got, *p.Views), append(quality, p.Quality)
			require.Equal(t, "test", *p.Source)
			require.Equal(t, p.Day, p.FetchedAt.Day())
		}
		require.Equal(t, []int64{95, 90, 90, 100}, got)
		require.Equal(t, []store.Quality{store.QualityMeasured, store.QualityMeasured, store.QualityCorrected, store.QualityMeasured}, quality)
		require.EqualValues(t, 95, *storetest.VideoOf(t, o, l).Latest.Views)
	})
}

func TestAcknowledge_setsACountToNullIfThePlatformHidesIt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, ingest.VideoFacts{Views: new(int64(100)), Likes: new(int64(10)), Comments: new(int64(8)), Shares: new(int64(7)),
			Bookmarks: new(int64(6)), HiddenStats: new(false)}))
		db.Clock.Advance(24 * time.Hour)
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(110)))
		require.EqualValues(t, 10, *storetest.VideoOf(t, o, l).Latest.Likes, "likes must stay unchanged if the call did not report them")
		db.Clock.Advance(24 * time.Hour)
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, ingest.VideoFacts{Views: new(int64(120)), HiddenStats: new(true)}))
		v := storetest.VideoOf(t, o, l)
		require.Nil(t, v.Latest.Likes, "a hidden count must be null")
		require.EqualValues(t, 21, *v.LatestEngagement)
		require.EqualValues(t, 120, *v.Latest.Views)
		require.Equal(t, []int64{8, 7, 6}, []int64{*v.Latest.Comments, *v.Latest.Shares, *v.Latest.Bookmarks}, "counts that the source does not give must stay unchanged if likes are hidden")
		require.Nil(t, recentPoints(t, db, o, l)[0].Likes)
		require.Nil(t, organisationDay(t, db, o).Likes)
	})
}

func TestAcknowledge_makesAVideoPublicAgainIfASourceReportsCounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		measure := func(facts ingest.VideoFacts) bool {
			storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: facts})
			return storetest.VideoOf(t, o, l).Private
		}
		require.True(t, measure(ingest.VideoFacts{Views: new(int64(7)), Private: new(true)}))
		require.False(t, measure(storetest.Views(8)))
	})
}

func TestAcknowledge_keepsAMoreExactVideoLength(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		tracked, err := o.Track(t.Context(), store.TrackRequest{Links: []link.Link{storetest.ParseLink(t, "https://youtu.be/dQw4w9WgXcQ")}, Immediate: 1})
		require.NoError(t, err)
		id := tracked[0].ID
		for _, c := range []struct {
			says float64
			want string
		}{{212, "212"}, {212.607, "212.607"}, {212, "212.607"}, {213, "212.607"}, {214, "214"}, {213.5, "213.5"}, {0, "213.5"}} {
			db.Clock.Advance(time.Hour)
			length := c.says
			at := store.InstantOf(db.Clock.Now())
			require.NoError(t, db.Acknowledge(t.Context(), queue.Claim{}, at, []ingest.Outcome{{Source: "test", State: "active", NextAt: at,
				Target: queue.Target{Platform: link.YouTube, Kind: "video", ExternalID: "dQw4w9WgXcQ"}, Facts: &ingest.VideoFacts{LengthSeconds: &length}}}))
			v, err := o.Video(t.Context(), store.Ref{ID: id})
			require.NoError(t, err)
			require.Equal(t, c.want, *v.VideoLength, "%v", c.says)
		}
	})
}

// Acknowledge reads each video, changes it, and writes all columns that a fetch can change. If it did not read
// one of them, the column would lose its value.
func TestAcknowledge_keepsTheValuesThatTheFetchDoesNotReport(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		l := storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		storetest.Deliver(t, db, link.TikTok, storetest.FactsWithAuthor("17", "someone"))
		db.Exec(t, `UPDATE videos SET uploaded_at = '2026-01-02', song_name = 'a', song_link = 'b', thumbnail_url = 'c', video_length = '58.5', title = 'Title', title_folded = 'title',
 not_safe = true, hidden_stats = true, ad_info_shop = true, ad_is_ad = true, ad_product_id_shop = 'd', latest_views = 10, latest_likes = 20, latest_comments = 30, latest_shares = 40, latest_bookmarks = 50,
 latest_engagement = 60, outlier_multiplier = 1, increase_1d = 1.5, increase_7d = 2.5, increase_14d = 3.5, increase_30d = 4.5, views_gained_7d = 70, fetch_reason = 'e', last_attempt_at = 80, next_fetch_at = 90, counted_since = '2026-01-02'`)
		row := func() map[string]any {
			rows, err := db.Raw(t).QueryContext(t.Context(), "SELECT * FROM videos")
			require.NoError(t, err)
			defer func() { require.NoError(t, rows.Close()) }()
			columns, err := rows.Columns()
			require.NoError(t, err)
			require.True(t, rows.Next())
			values, targets := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				targets[i] = &values[i]
			}
			require.NoError(t, rows.Scan(targets...))
			require.NoError(t, rows.Err())
			named := map[string]any{}
			for i, name := range columns {
				named[name] = values[i]
			}
			return named
		}
		before := row()
		for name, value := range before {
			require.NotNil(t, value, name)
		}
		db.Clock.Advance(time.Hour)
		outcome := ingest.Outcome{Source: "test", State: "active", NextAt: store.InstantOf(db.Clock.Now()), Private: new(true), Target: queue.Target{Platform: link.TikTok, Kind: "video", ExternalID: l.ID}}
		require.NoError(t, db.Acknowledge(t.Context(), queue.Claim{}, store.InstantOf(db.Clock.Now()), []ingest.Outcome{outcome}))
		after := row()
		require.NotEqual(t, before["private"], after["private"])
		delete(before, "private")
		delete(after, "private")
		require.Equal(t, before, after)
	})
}
