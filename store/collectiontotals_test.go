package store_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestCollectionTotals_videoCountsFromItsFirstMembership(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLinks(t, 4)...)
		facts := map[link.Link]ingest.VideoFacts{}
		for i, l := range storetest.VideoLinks(t, 4) {
			facts[l] = ingest.VideoFacts{Username: new([]string{"ann", "bob"}[i%2]), Title: new([]string{"#dog #cat", "#cat"}[i/2]), Views: new(int64(10))}
		}
		storetest.Measure(t, db, db.Clock.Now(), facts)
		root := storetest.Collection(t, o, "Root", nil)
		child := storetest.Collection(t, o, "Child", &root.ID)
		outside := storetest.Collection(t, o, "Outside", nil)
		id := func(i int) uuid.UUID { return storetest.VideoOf(t, o, storetest.VideoLink(t, i)).ID }
		account := func(name string) uuid.UUID {
			return storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@"+name)).ID
		}
		created := map[uuid.UUID]store.Instant{}
		for i := range 4 {
			created[id(i)] = storetest.VideoOf(t, o, storetest.VideoLink(t, i)).CreatedAt
		}
		// The columns added_at are written directly, so that members are older and newer than the videos.
		at := func(hours int) store.Instant { return created[id(0)].Add(time.Duration(hours) * time.Hour) }
		member := func(table, column string, collection uuid.UUID, value any, hours int) {
			db.Exec(t, "INSERT INTO collection_"+table+" (organisation_id, collection_id, "+column+", added_at) VALUES (?, ?, ?, ?)", o.ID(), collection, value, at(hours))
		}
		member("videos", "video_id", root.ID, id(0), 9)
		member("videos", "video_id", child.ID, id(0), 7)
		member("videos", "video_id", outside.ID, id(3), -9)
		member("accounts", "account_id", root.ID, account("ann"), 6)
		member("accounts", "account_id", child.ID, account("ann"), 8)
		member("accounts", "account_id", outside.ID, account("bob"), -9)
		member("hashtags", "tag", root.ID, "cat", 5)
		member("hashtags", "tag", child.ID, "cat", 3)
		member("hashtags", "tag", root.ID, "dog", -4)
		member("hashtags", "tag", child.ID, "dog", 2)
		member("hashtags", "tag", outside.ID, "cat", -9)
		db.Clock.Advance(24 * time.Hour)
		addedAt := func(children bool) map[uuid.UUID]store.Instant {
			totals, err := o.CollectionTotals(t.Context(), store.CollectionTotalsQuery{Collection: root.ID, IncludeChildren: children, From: storetest.Today(db) - 1, To: storetest.Today(db), ForReport: true})
			require.NoError(t, err)
			got := map[uuid.UUID]store.Instant{}
			for _, v := range totals.Videos {
				got[v.ID] = v.AddedAt
			}
			return got
		}
		require.Equal(t, map[uuid.UUID]store.Instant{id(0): created[id(0)], id(1): created[id(1)], id(2): at(3), id(3): at(3)}, addedAt(true),
			"a video must count from its first membership, but not before it was tracked")
		require.Equal(t, map[uuid.UUID]store.Instant{id(0): created[id(0)], id(1): created[id(1)], id(2): at(5), id(3): at(5)}, addedAt(false))
		db.Exec(t, "DELETE FROM collection_hashtags WHERE organisation_id = ?", o.ID())
		require.Equal(t, map[uuid.UUID]store.Instant{id(0): at(6), id(2): at(6)}, addedAt(true))
		db.Exec(t, "DELETE FROM collection_accounts WHERE organisation_id = ?", o.ID())
		require.Equal(t, map[uuid.UUID]store.Instant{id(0): at(7)}, addedAt(true))
		require.Equal(t, map[uuid.UUID]store.Instant{id(0): at(9)}, addedAt(false))
	})
}

func TestCollectionTotals_readsPointsOnlyOnceForEachVersion(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLink(t, 0))
		root := storetest.Collection(t, o, "Root", nil)
		_, err := o.AddVideos(t.Context(), root.ID, []uuid.UUID{storetest.VideoOf(t, o, storetest.VideoLink(t, 0)).ID}, nil)
		require.NoError(t, err)
		query := store.CollectionTotalsQuery{Collection: root.ID, From: storetest.Today(db), To: storetest.Today(db)}
		readViews := func(q store.CollectionTotalsQuery) (views int64, reads int) {
			db.Guard.Statements()
			totals, err := o.CollectionTotals(t.Context(), q)
			require.NoError(t, err)
			for _, statement := range db.Guard.Statements() {
				reads += strings.Count(statement, "wanted AS MATERIALIZED")
			}
			return totals.Days[0].Views, reads
		}
		for _, want := range []int64{5, 8} {
			storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{storetest.VideoLink(t, 0): storetest.Views(want)})
			for n := range 3 {
				views, reads := readViews(query)
				require.Equal(t, want, views)
				require.Equal(t, map[bool]int{true: 1, false: 0}[n == 0], reads)
			}
		}
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{storetest.VideoLink(t, 0): storetest.Views(9)})
		query.WithPrevious = true
		for n := range 4 {
			_, reads := readViews(query)
			require.Equal(t, map[bool]int{true: 1, false: 0}[n == 0], reads, "both periods must be read together, and answer queries without the previous period")
			query.WithPrevious = n < 1
		}
		query.ForReport = true
		for range 2 {
			_, reads := readViews(query)
			require.Equal(t, 1, reads, "a report must be computed from the database")
		}
	})
}

func TestCollectionTotals_readsThePreviousPeriodTogetherWithThePeriod(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.CreatePartitions(t, db, 60)
		o, today := storetest.NewOrg(t, db), storetest.Today(db)
		root := storetest.Collection(t, o, "Root", nil)
		random := rand.New(rand.NewPCG(1, 2))
		for n, tracked := range storetest.Track(t, o, storetest.VideoLinks(t, 40)...) {
			db.Exec(t, "INSERT INTO collection_videos (organisation_id, collection_id, video_id, added_at) VALUES (?, ?, ?, ?)", o.ID(), root.ID, tracked.ID,
				store.InstantOf((today - store.Date(random.IntN(60))).Time()))
			points := storetest.Series{Daily: map[store.Date]store.Counts{}}
			// One video has no points. The last points of some videos are old, and some points have no views.
			for age := random.IntN(30); n > 0 && age < 59; age += 1 + random.IntN(20) {
				c := store.Counts{Likes: new(int64(n))}
				if random.IntN(4) > 0 {
					c.Views = new(int64(10_000 - 100*age + random.IntN(200)))
				}
				points.Daily[today-store.Date(age)] = c
			}
			points.Insert(t, db, o, tracked.ID)
		}
		db.Exec(t, "UPDATE videos SET latest_views = 1, latest_likes = 1 WHERE organisation_id = ?", o.ID()) // CollectionTotals only tests whether the latest counts are NULL
		read := func(from, to store.Date, withPrevious bool) store.CollectionTotals {
			totals, err := o.CollectionTotals(t.Context(), store.CollectionTotalsQuery{Collection: root.ID, From: from, To: to, WithPrevious: withPrevious})
			require.NoError(t, err)
			return totals
		}
		for _, days := range []store.Date{1, 2, 7, 15, 25} {
			for _, to := range []store.Date{today, today - 6} {
				from := to - days + 1
				alone, previous := read(from, to, false), read(from-days, from-1, false)
				var before store.CollectionDay
				if day := read(from-days-1, from-days-1, false).Days; len(day) > 0 {
					before = day[0]
				}
				got := read(from, to, true)
				require.Equal(t, alone.Days, got.Days)
				require.Equal(t, alone.Videos, got.Videos)
				want := store.PreviousPeriod{Gained: previous.Gains().Gained, Counted: before.Videos - before.Unknown.Views}
				require.Equal(t, want, *got.Previous, "%d days until %d days ago", days, today-to)
				require.True(t, days < 7 || *want.Gained > 0)
			}
		}
	})
}

func TestCollectionTotals_leavesOutThePreviousPeriodIfBothHaveTooManyDays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		root := storetest.Collection(t, o, "Root", nil)
		const videos = 300
		links, facts := storetest.VideoLinks(t, videos), map[link.Link]ingest.VideoFacts{}
		var ids []uuid.UUID
		for n, tracked := range storetest.Track(t, o, links...) {
			ids, facts[links[n]] = append(ids, tracked.ID), storetest.Views(5)
		}
		for part := range slices.Chunk(ids, 100) {
			_, err := o.AddVideos(t.Context(), root.ID, part, nil)
			require.NoError(t, err)
		}
		storetest.Measure(t, db, db.Clock.Now(), facts)
		longest := store.Date(store.MaxTotalsVideoDays / 2 / videos)
		db.Clock.Advance(time.Duration(2*longest+2) * 24 * time.Hour)
		today := storetest.Today(db)
		for days, counted := range map[store.Date]int64{longest: videos, longest + 1: 0} {
			totals, err := o.CollectionTotals(t.Context(), store.CollectionTotalsQuery{Collection: root.ID, From: today - days + 1, To: today, WithPrevious: true})
			require.NoError(t, err)
			require.Len(t, totals.Days, int(days))
			require.Equal(t, &store.PreviousPeriod{Counted: counted}, totals.Previous, "%d days", days)
		}
	})
}

func TestCollectionTotals_endDayIsTheDayOfTheLastKnownViews(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		l := storetest.VideoLink(t, 0)
		storetest.Track(t, o, l)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.Views(5)})
		measured := storetest.Today(db)
		db.Clock.Advance(24 * time.Hour)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: {Likes: new(int64(1))}})
		db.Clock.Advance(24 * time.Hour)
		root := storetest.Collection(t, o, "Root", nil)
		_, err := o.AddVideos(t.Context(), root.ID, []uuid.UUID{storetest.VideoOf(t, o, l).ID}, nil)
		require.NoError(t, err)
		totals, err := o.CollectionTotals(t.Context(), store.CollectionTotalsQuery{Collection: root.ID, From: measured, To: storetest.Today(db)})
		require.NoError(t, err)
		require.Equal(t, new(int64(5)), totals.Videos[0].EndViews)
		require.Equal(t, measured, *totals.Videos[0].EndDay, "the last point has no views, so the end day must be that of the point before it")
		require.Nil(t, totals.Videos[0].Gained)
	})
}

// Sources differ in the counts that they report. So a count can be missing in the last points before a period although earlier points have it.
func TestCollectionTotals_useTheLastKnownCountBeforeThePeriod(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 0)
		root := storetest.Collection(t, o, "Root", nil)
		id := storetest.Track(t, o, l)[0].ID
		_, err := o.AddVideos(t.Context(), root.ID, []uuid.UUID{id}, nil)
		require.NoError(t, err)
		old := storetest.Today(db) - 200
		for week, c := range []store.Counts{{Views: new(int64(1)), Shares: new(int64(4))}, {Views: new(int64(2)), Likes: new(int64(6))}} {
			storetest.Series{Weekly: map[store.Date]store.Counts{old + store.Date(7*week): c}}.Insert(t, db, o, id)
		}
		db.Exec(t, "UPDATE videos SET latest_shares = 4 WHERE organisation_id = ?", o.ID()) // as the fetch of the first week would have stored
		measure := func(days int, facts ingest.VideoFacts) store.Date {
			t.Helper()
			db.Clock.Advance(time.Duration(days) * 24 * time.Hour)
			storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: facts})
			return storetest.Today(db)
		}
		measure(0, ingest.VideoFacts{Views: new(int64(10)), Likes: new(int64(7)), Bookmarks: new(int64(3))})
		measure(1, ingest.VideoFacts{Views: new(int64(20)), Bookmarks: new(int64(3))})
		last := measure(1, ingest.VideoFacts{Views: new(int64(30))})
		db.Clock.Advance(5 * 24 * time.Hour)
		for _, report := range []bool{false, true} {
			for from := last - 3; from <= last+3; from++ {
				totals, err := o.CollectionTotals(t.Context(), store.CollectionTotalsQuery{Collection: root.ID, From: from, To: last + 4, ForReport: report})
				require.NoError(t, err)
				day := totals.Days[len(totals.Days)-1]
				require.Equal(t, store.Counts{Views: new(int64(30)), Likes: new(int64(7)), Shares: new(int64(4)), Bookmarks: new(int64(3))}, day.KnownSums(), "from the day %d", from-last)
			}
		}
	})
}

func TestCollectionTotals_readsFewPointsBeforeThePeriod(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.CreatePartitions(t, db, 60)
		o, today := storetest.NewOrg(t, db), storetest.Today(db)
		for n, all := range []ingest.VideoFacts{
			{Views: new(int64(5)), Likes: new(int64(2)), Shares: new(int64(1))},  // the source stops reporting shares
			{Views: new(int64(5)), Likes: new(int64(2)), HiddenStats: new(true)}, // the platform hides the likes
		} {
			l := storetest.VideoLink(t, n)
			id := storetest.Track(t, o, l)[0].ID
			storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: all})
			if all.HiddenStats != nil {
				all.Likes = nil
				storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: all})
			}
			points := storetest.Series{Daily: map[store.Date]store.Counts{}}
			for age := range store.Date(59) {
				c := store.Counts{Views: new(int64(4)), Likes: all.Likes}
				if age == 58 {
					c.Likes, c.Shares = new(int64(2)), all.Shares
				}
				points.Daily[today-1-age] = c
			}
			points.Insert(t, db, o, id)
			read, err := store.CountTotalsPoints(t.Context(), o, id, today, today)
			require.NoError(t, err)
			require.LessOrEqual(t, read, 4, "the points of today and of yesterday, and the last point with the missing count")
			require.GreaterOrEqual(t, read, 3)
		}
	})
}
