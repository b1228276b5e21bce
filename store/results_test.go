package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// points are the stored points of the last 30 days, the newest first.
func points(t *testing.T, db *storetest.DB, o *store.Org, l link.Link) []store.Point {
	t.Helper()
	points, err := o.History(t.Context(), store.VideoRef{Link: l}, today(db)-30, today(db))
	require.NoError(t, err)
	return bare(points)
}

// Spec: 2.2-10, 2.2-11, 2.2-12, 2.2-13, 2.2-14, 2.2-15, 2.2-16, 2.2-17, 2.2-18, 2.2-19, 2.2-22, 2.2-23, 2.2-24
func TestResults_areWrittenWhole(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), parse(t, "https://www.tiktok.com/@someone/video/7301234567890123456")
		track(t, o, l)
		before := video(t, o, l)
		facts := store.VideoFacts{Views: new(int64(1000)), Likes: new(int64(100)), Comments: new(int64(10)), Bookmarks: new(int64(1)),
			Title: new("A #Dog and a #cat 🐶"), Username: new("someone"), AccountID: new("42"), AccountName: new("Some One"),
			UploadedAt: new(time.Date(2023, 11, 14, 23, 59, 59, 0, time.UTC)), LengthSeconds: new(12.5), SongName: new("A song"),
			SongLink: new("https://www.tiktok.com/music/a-1"), NotSafe: new(true), Private: new(true), HiddenStats: new(true), IsAd: new(true),
			ShopAd: new(true), ShopProductID: new("p1")}
		require.Equal(t, 1, deliver(t, db, link.TikTok, facts))

		v := video(t, o, l)
		now := store.InstantOf(db.Clock.Now())
		want := before
		want.LatestViews, want.LatestLikes, want.LatestComments, want.LatestBookmarks = new(int64(1000)), new(int64(100)), new(int64(10)), new(int64(1))
		want.LatestEngagement, want.LatestUpdatedAt = new(int64(111)), &now
		want.Title, want.TitleFolded, want.UploadedAt, want.VideoLength = "A #Dog and a #cat 🐶", "a #dog and a #cat 🐶", new(store.DateOf(*facts.UploadedAt)), new("12.5")
		want.SongName, want.SongLink, want.AdProductIDShop = facts.SongName, facts.SongLink, facts.ShopProductID
		want.NotSafe, want.Private, want.HiddenStats, want.AdIsAd, want.AdInfoShop = true, true, true, true, true
		want.OutlierMultiplier = 1
		require.Equal(t, want, v, "shares stay null: the source did not give them")

		a := account(t, o, parse(t, "https://www.tiktok.com/@someone"))
		require.Equal(t, "42", *a.ExternalID)
		require.Equal(t, "Some One", *a.Name)
		require.Equal(t, []store.Point{{Day: today(db), Counts: store.Counts{Views: facts.Views, Likes: facts.Likes, Comments: facts.Comments, Bookmarks: facts.Bookmarks}}},
			points(t, db, o, l))
	})
}

func TestResults_writtenTwiceChangeNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		track(t, o, clips(t, 3)...)
		c := claim(t, db, link.TikTok, "video")[0]
		var outcomes []store.Outcome
		for i, target := range c.Targets {
			outcomes = append(outcomes, outcome(db, target, store.VideoFacts{Views: new(int64(i * 100)), Likes: new(int64(i)), Title: new("#one #two"),
				Username: new("someone"), AccountID: new("42"), UploadedAt: new(db.Clock.Now())}))
		}
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, outcomes))
		once := stored(t, db, o)
		require.NotEmpty(t, once["snapshots_daily"])
		for range 2 {
			require.NoError(t, db.Acknowledge(t.Context(), c, c.At, outcomes))
			require.Equal(t, once, stored(t, db, o))
		}
	})
}

func TestResults_tellNullFromZero(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		track(t, o, clips(t, 2)...)
		zero, silent := clip(t, 0), clip(t, 1)
		measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{
			zero:   {Views: new(int64(0)), Likes: new(int64(0)), Comments: new(int64(0)), Shares: new(int64(0)), Bookmarks: new(int64(0))},
			silent: {Title: new("No counts")},
		})
		nought := store.Counts{Views: new(int64(0)), Likes: new(int64(0)), Comments: new(int64(0)), Shares: new(int64(0)), Bookmarks: new(int64(0))}
		v := video(t, o, zero)
		require.Equal(t, store.Counts{Views: v.LatestViews, Likes: v.LatestLikes, Comments: v.LatestComments, Shares: v.LatestShares, Bookmarks: v.LatestBookmarks}, nought)
		require.Zero(t, *v.LatestEngagement)
		require.Equal(t, nought, points(t, db, o, zero)[0].Counts)

		v = video(t, o, silent)
		require.Nil(t, v.LatestViews)
		require.Nil(t, v.LatestEngagement)
		require.NotNil(t, v.LatestUpdatedAt, "it was fetched")
		require.Equal(t, []store.Point{{Day: today(db)}}, points(t, db, o, silent))
	})
}

func TestResults_ofOneDayCompleteEachOther(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), clip(t, 1)
		track(t, o, l)
		at := db.Clock.Now()
		measure(t, db, at, map[link.Link]store.VideoFacts{l: {Views: new(int64(10)), Likes: new(int64(5)), Title: new("Title")}})
		measure(t, db, at.Add(time.Hour), map[link.Link]store.VideoFacts{l: {Views: new(int64(12)), Shares: new(int64(1))}})
		require.Equal(t, []store.Point{{Day: today(db), Counts: store.Counts{Views: new(int64(12)), Likes: new(int64(5)), Shares: new(int64(1))}}}, points(t, db, o, l))
		require.Equal(t, "Title", video(t, o, l).Title, "what is not said stays")

		db.Clock.Advance(24 * time.Hour)
		measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{l: {Views: new(int64(20))}})
		require.Equal(t, store.Counts{Views: new(int64(20))}, points(t, db, o, l)[0].Counts, "another day's likes are not this day's")
		require.EqualValues(t, 5, *video(t, o, l).LatestLikes, "but they are the latest that are known")
	})
}

func TestResults_olderThanWhatIsThereAreIgnored(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), clip(t, 1)
		track(t, o, l)
		at := db.Clock.Now()
		measure(t, db, at, map[link.Link]store.VideoFacts{l: {Views: new(int64(10)), Title: new("New")}})
		before := stored(t, db, o)
		for _, late := range []time.Duration{time.Microsecond, time.Hour, 24 * time.Hour, 500 * 24 * time.Hour} {
			measure(t, db, at.Add(-late), map[link.Link]store.VideoFacts{l: {Views: new(int64(9)), Likes: new(int64(9)), Title: new("Old")}})
			require.Equal(t, before, stored(t, db, o), late)
		}
	})
}

func TestResults_belongToTheDayOfTheFetch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), clip(t, 1)
		track(t, o, l)
		db.Clock.Set(time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)) // a month for which no room was made ahead
		for _, at := range []time.Time{
			time.Date(2024, 2, 28, 23, 59, 59, 999_999_000, time.UTC),
			time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
			time.Date(2024, 3, 1, 1, 0, 0, 0, time.FixedZone("east", 2*3600)), // 29 February, 23:00 UTC
			time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC),
		} {
			measure(t, db, at, map[link.Link]store.VideoFacts{l: views(at.Unix())})
		}
		db.Clock.Set(time.Date(2024, 3, 5, 0, 0, 0, 0, time.UTC))
		var days []string
		for _, p := range points(t, db, o, l) {
			days = append(days, p.Day.String())
		}
		require.Equal(t, []string{"2024-03-01", "2024-02-29", "2024-02-28"}, days)
		weeks := storetest.Column[store.Date](t, db, "SELECT DISTINCT week FROM snapshots_daily")
		require.Equal(t, []store.Date{store.DateOf(time.Date(2024, 2, 26, 0, 0, 0, 0, time.UTC))}, weeks)
	})
}

func TestResults_withoutFactsChangeFlagsAlone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), clip(t, 1)
		track(t, o, l)
		measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{l: views(10)})
		want := video(t, o, l)
		db.Clock.Advance(time.Hour)
		refused := store.Outcome{Target: store.Target{Platform: link.TikTok, Kind: "video", ExternalID: l.ID}, Private: new(true), NotSafe: new(true), State: "gone"}
		require.NoError(t, db.Acknowledge(t.Context(), store.Claim{}, store.InstantOf(db.Clock.Now()), []store.Outcome{refused}))
		want.Private, want.NotSafe = true, true
		require.Equal(t, want, video(t, o, l), "no fetch succeeded: even its time stays")
		require.Len(t, points(t, db, o, l), 1)

		refused.Private, refused.NotSafe = nil, nil
		require.NoError(t, db.Acknowledge(t.Context(), store.Claim{}, store.InstantOf(db.Clock.Now()), []store.Outcome{refused}))
		require.Equal(t, want, video(t, o, l))
	})
}

func TestResults_goToEachOrganisationThatTracksTheVideoAndToNoOther(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		one, two, three := newOrg(t, db), newOrg(t, db), newOrg(t, db)
		track(t, one, clips(t, 2)...)
		track(t, two, clip(t, 1))
		track(t, three, clip(t, 2))
		before := stored(t, db, three)
		measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{
			clip(t, 0): {Views: new(int64(5)), AccountID: new("42"), Username: new("someone")},
			clip(t, 1): {Views: new(int64(6)), AccountID: new("42"), Username: new("someone"), Title: new("#shared")},
		})
		require.EqualValues(t, 5, *video(t, one, clip(t, 0)).LatestViews)
		require.EqualValues(t, 6, *video(t, one, clip(t, 1)).LatestViews)
		require.EqualValues(t, 6, *video(t, two, clip(t, 1)).LatestViews)
		require.NotEqual(t, video(t, one, clip(t, 1)).LinkedAccountID, video(t, two, clip(t, 1)).LinkedAccountID, "each has its own record of the account")
		require.EqualValues(t, 11, *account(t, one, parse(t, "https://www.tiktok.com/@someone")).TotalViews)
		require.EqualValues(t, 6, *account(t, two, parse(t, "https://www.tiktok.com/@someone")).TotalViews)
		require.Equal(t, before, stored(t, db, three))
	})
}

func TestHashtags_followTheTitle(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), clip(t, 1)
		track(t, o, l)
		has := func(tag string) bool {
			t.Helper()
			return list(t, o, store.VideoQuery{Hashtag: &tag}).Total == 1
		}
		for i, c := range []struct {
			title    string
			has, not []string
		}{
			{"Look: #Dog#cat, #dog", []string{"dog", "DOG", "#dog", "cat"}, []string{"do", "dogs", "look"}},
			{"Now #Straße and #Grüße_2 #日本語", []string{"straße", "GRÜßE_2", "日本語"}, []string{"dog", "cat", "日本"}},
			{"No tag", nil, []string{"straße", "日本語", "dog"}},
		} {
			measure(t, db, db.Clock.Now().Add(time.Duration(i)*time.Second), map[link.Link]store.VideoFacts{l: {Title: new(c.title)}})
			for _, tag := range c.has {
				require.True(t, has(tag), "%q has %q", c.title, tag)
			}
			for _, tag := range c.not {
				require.False(t, has(tag), "%q has not %q", c.title, tag)
			}
		}
	})
}

func TestResults_completeALinkThatLackedItsAuthor(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		l := parse(t, "https://m.tiktok.com/v/7301234567890123456.html")
		require.Empty(t, l.Handle)
		track(t, o, l)
		measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{l: {Username: new("someone")}})
		v := video(t, o, l)
		require.Equal(t, "https://www.tiktok.com/@someone/video/7301234567890123456", v.Link)
		require.Equal(t, "someone", v.Username)
		require.NotNil(t, v.LinkedAccountID)
	})
}

func TestResults_ofABatchTakeAsManyStatementsAsOfOne(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		track(t, o, clips(t, 50)...)
		count := func(n int) int {
			facts := map[link.Link]store.VideoFacts{}
			for _, l := range clips(t, n) {
				facts[l] = store.VideoFacts{Views: new(int64(n)), Title: new("#tag"), Username: new("someone"), AccountID: new("42"), UploadedAt: new(db.Clock.Now())}
			}
			db.Clock.Advance(time.Second)
			db.Guard.Statements()
			measure(t, db, db.Clock.Now(), facts)
			return len(db.Guard.Statements())
		}
		count(50) // makes the account and the tags
		one := count(1)
		require.Equal(t, one, count(50))
		require.Less(t, one, 20)
	})
}

func TestResults_keepWhatFellAsItIs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), clip(t, 1)
		track(t, o, l)
		for _, n := range []int64{100, 90, 90, 95} {
			require.Equal(t, 1, deliver(t, db, link.TikTok, views(n)))
			db.Clock.Advance(24 * time.Hour)
		}
		points, err := o.History(t.Context(), store.VideoRef{Link: l}, today(db)-30, today(db))
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
		require.EqualValues(t, 95, *video(t, o, l).LatestViews)
	})
}

func TestResults_forgetACountThatIsHidden(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), clip(t, 1)
		track(t, o, l)
		require.Equal(t, 1, deliver(t, db, link.TikTok, store.VideoFacts{Views: new(int64(100)), Likes: new(int64(10)), HiddenStats: new(false)}))
		db.Clock.Advance(24 * time.Hour)
		require.Equal(t, 1, deliver(t, db, link.TikTok, views(110)))
		require.EqualValues(t, 10, *video(t, o, l).LatestLikes, "this call did not ask for them")
		db.Clock.Advance(24 * time.Hour)
		require.Equal(t, 1, deliver(t, db, link.TikTok, store.VideoFacts{Views: new(int64(120)), HiddenStats: new(true)}))
		v := video(t, o, l)
		require.Nil(t, v.LatestLikes, "hidden is neither 0 nor what it was")
		require.Nil(t, v.LatestEngagement)
		require.EqualValues(t, 120, *v.LatestViews)
		require.Nil(t, points(t, db, o, l)[0].Likes)
		require.EqualValues(t, 0, organisationDay(t, db, o).Likes)
	})
}

func TestResults_keepALengthThatIsKnownMoreExactly(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		tracked, err := o.Track(t.Context(), store.TrackRequest{Links: []link.Link{parse(t, "https://youtu.be/dQw4w9WgXcQ")}, Immediate: 1, Enqueue: 1})
		require.NoError(t, err)
		id := tracked[0].VideoID
		for _, c := range []struct {
			says float64
			want string
		}{{212, "212"}, {212.607, "212.607"}, {212, "212.607"}, {213, "212.607"}, {214, "214"}, {213.5, "213.5"}} {
			db.Clock.Advance(time.Hour)
			length := c.says
			at := store.InstantOf(db.Clock.Now())
			require.NoError(t, db.Acknowledge(t.Context(), store.Claim{}, at, []store.Outcome{{Source: "test", State: "active", NextAt: at,
				Target: store.Target{Platform: link.YouTube, Kind: "video", ExternalID: "dQw4w9WgXcQ"}, Facts: &store.VideoFacts{LengthSeconds: &length}}}))
			v, err := o.Video(t.Context(), store.VideoRef{ID: id})
			require.NoError(t, err)
			require.Equal(t, c.want, *v.VideoLength, "%v", c.says)
		}
	})
}
