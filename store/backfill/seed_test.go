package backfill_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// dataset has the values that a source reports for the videos of one account on consecutive days. The last day is today.
type dataset struct {
	days   int
	views  map[string]func(day int) *int64 // the key is the external id of a video; the function returns the video's views on a day
	titles map[string]string
}

// sortedIDs returns the external ids of the videos in ascending order.
func (p dataset) sortedIDs() []string {
	ids := make([]string, 0, len(p.views))
	for id := range p.views {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// growingViews returns a function that returns the views on a day. The views start at firstViews and grow by the same number each day.
func growingViews(firstViews, by int64) func(int) *int64 {
	return func(day int) *int64 { return new(firstViews + by*int64(day)) }
}

// sampleDataset returns a dataset with four videos: one grows slowly, one grows fast, one lacks counts on some days, and one never has counts.
func sampleDataset(days int) dataset {
	return dataset{days: days,
		views: map[string]func(int) *int64{
			"7301234567890000001": growingViews(1000, 10),
			"7301234567890000002": growingViews(2000, 15000),
			"7301234567890000003": func(day int) *int64 {
				if day > 3 && day < 8 {
					return nil
				}
				return new(int64(500 + day))
			},
			"7301234567890000004": func(int) *int64 { return nil },
		},
		titles: map[string]string{"7301234567890000001": "one #Dog", "7301234567890000002": "two #dog #cat", "7301234567890000003": "three",
			"7301234567890000004": "four"},
	}
}

// factsOn returns the values that the source reports for a video on a day.
func (p dataset) factsOn(id string, day int) ingest.VideoFacts {
	views := p.views[id](day)
	f := ingest.VideoFacts{Views: views, Title: new(p.titles[id]), Username: new("someone"), AccountID: new("42"),
		UploadedAt: new(time.Date(2023, 11, 14, 0, 0, 0, 0, time.UTC)), LengthSeconds: new(12.5)}
	if views != nil {
		f.Likes, f.Comments = new(*views/10), new(*views/100)
	}
	return f
}

// toBatch returns the dataset as an argument of Seed. The last point of each video has the time `now`.
func (p dataset) toBatch(now time.Time) backfill.SeedBatch {
	account := backfill.SeedAccount{Account: store.Account{ID: fixedID(1), Platform: link.TikTok, ExternalID: new("42"), Username: "someone",
		HandleCurrent: true, Link: "https://www.tiktok.com/@someone", CreatedAt: store.InstantOf(now.AddDate(0, 0, -p.days+1))}}
	for n, id := range p.sortedIDs() {
		v := backfill.SeedVideo{Video: store.Video{ID: fixedID(100 + n), Platform: link.TikTok, ExternalID: id,
			Link: "https://www.tiktok.com/@someone/video/" + id, Username: "someone", Title: p.titles[id], VideoLength: new("12.5"),
			UploadedAt: new(store.DateOf(time.Date(2023, 11, 14, 0, 0, 0, 0, time.UTC))), CreatedAt: account.CreatedAt, Direct: true}}
		for day := range p.days {
			f := p.factsOn(id, day)
			v.Points = append(v.Points, backfill.Point{At: store.InstantOf(now.AddDate(0, 0, day-p.days+1)),
				Counts: store.Counts{Views: f.Views, Likes: f.Likes, Comments: f.Comments}})
		}
		account.Videos = append(account.Videos, v)
	}
	return backfill.SeedBatch{Accounts: []backfill.SeedAccount{account}, Source: "test"}
}

// fixedID returns a UUID that depends only on n.
func fixedID(n int) uuid.UUID {
	return uuid.UUID{0, 0, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, byte(n >> 8), byte(n)}
}

// allVideos returns the organisation's tracked videos, ordered by external id.
func allVideos(t *testing.T, o *store.Org) []store.Video {
	t.Helper()
	page, err := o.ListVideos(t.Context(), store.VideoQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 5000}})
	require.NoError(t, err)
	slices.SortFunc(page.Rows, func(a, b store.Video) int { return cmp.Compare(a.ExternalID, b.ExternalID) })
	require.EqualValues(t, len(page.Rows), page.Total, "the stored number of videos must equal the length of the list")
	return page.Rows
}

func TestSeed_givesTheSameDataAsFetching(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		p := sampleDataset(12)
		today := db.Clock.Now()
		fetched, seeded := storetest.NewOrg(t, db), storetest.NewOrg(t, db)

		db.Clock.Set(today.AddDate(0, 0, -p.days+1))
		var links []link.Link
		for _, id := range p.sortedIDs() {
			links = append(links, storetest.ParseLink(t, "https://www.tiktok.com/@someone/video/"+id))
		}
		storetest.Track(t, fetched, links...)
		for day := range p.days {
			fetchDueVideos(t, db, func(id string) ingest.VideoFacts { return p.factsOn(id, day) })
			if day+1 < p.days {
				db.Clock.Advance(24 * time.Hour)
			}
		}
		require.Equal(t, today, db.Clock.Now())
		require.NoError(t, backfill.Seed(t.Context(), seeded, p.toBatch(today)))

		want, got := allVideos(t, fetched), allVideos(t, seeded)
		require.Len(t, got, len(want))
		for i := range want {
			for _, ref := range []store.Date{1, 12} {
				day := store.DateOf(today)
				a, err := fetched.History(t.Context(), store.Ref{ID: want[i].ID}, day-ref, day)
				require.NoError(t, err)
				b, err := seeded.History(t.Context(), store.Ref{ID: got[i].ID}, day-ref, day)
				require.NoError(t, err)
				require.Equal(t, a, b)
			}
			want[i].OrganisationID, want[i].ID, want[i].LinkedAccountID = got[i].OrganisationID, got[i].ID, got[i].LinkedAccountID
			want[i].NextFetchAt = got[i].NextFetchAt // a seeded video is first fetched on the next day, at its time in the daily schedule
			require.Equal(t, want[i], got[i])
		}

		for _, tag := range []string{"dog", "cat"} {
			query := store.VideoQuery{Hashtag: &tag, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 10}}
			a, err := fetched.ListVideos(t.Context(), query)
			require.NoError(t, err)
			b, err := seeded.ListVideos(t.Context(), query)
			require.NoError(t, err)
			require.Equal(t, a.Total, b.Total)
		}

		ref := store.Ref{Link: storetest.ParseLink(t, "https://www.tiktok.com/@someone")}
		a, err := fetched.Account(t.Context(), ref)
		require.NoError(t, err)
		b, err := seeded.Account(t.Context(), ref)
		require.NoError(t, err)
		b.OrganisationID, b.ID = a.OrganisationID, a.ID
		require.Equal(t, a, b)

		day := store.DateOf(today)
		days, err := fetched.AccountHistory(t.Context(), ref, day-30, day)
		require.NoError(t, err)
		seededDays, err := seeded.AccountHistory(t.Context(), ref, day-30, day)
		require.NoError(t, err)
		require.Equal(t, days, seededDays)

		for _, rows := range []string{"organisation_totals WHERE organisation_id = ?", "organisation_days WHERE organisation_id = ? ORDER BY day", "videos WHERE organisation_id = ? ORDER BY external_id"} {
			query := "SELECT COALESCE(first_views, -1) FROM " + rows
			require.Equal(t, storetest.Column[int64](t, db, query, fetched.ID()), storetest.Column[int64](t, db, query, seeded.ID()), rows)
		}
		sums, err := fetched.OrganisationHistory(t.Context(), day-30, day)
		require.NoError(t, err)
		seededSums, err := seeded.OrganisationHistory(t.Context(), day-30, day)
		require.NoError(t, err)
		require.Equal(t, sums, seededSums)
	})
}

// fetchDueVideos claims every due video and stores the result of a fetch: the facts that factsOf returns for the video's external id.
func fetchDueVideos(t *testing.T, db *storetest.DB, factsOf func(id string) ingest.VideoFacts) {
	t.Helper()
	for _, lane := range queue.Lanes {
		c, err := db.Claim(t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 50, time.Minute, lane))
		require.NoError(t, err)
		var outcomes []ingest.Outcome
		for _, target := range c.Targets {
			f := factsOf(target.ExternalID)
			outcomes = append(outcomes, ingest.Outcome{Target: target, Facts: &f, Details: true, Source: "test",
				NextAt: store.InstantOf(db.Clock.Now().Add(24 * time.Hour)), State: "active"})
		}
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, outcomes))
	}
}

func TestSeed_storesOldDaysAsWeeklyPoints(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		b := sampleDataset(200).toBatch(db.Clock.Now())
		require.NoError(t, backfill.Seed(t.Context(), o, b))
		today := store.DateOf(db.Clock.Now())
		points, err := o.History(t.Context(), store.Ref{ID: b.Accounts[0].Videos[0].ID}, today-300, today)
		require.NoError(t, err)
		require.Equal(t, today, points[0].Day)
		require.Len(t, points, int(points[0].Day-points[len(points)-1].Day)+1, "the history must have a point for each day since the first weekly point")
		weeks := map[store.Date]int{}
		for i, p := range points {
			require.Equal(t, 1000+10*(199-int64(today-p.Day)), *p.Views, "interpolated points must be exact, because the growth is constant")
			require.Equal(t, today-store.Date(i), p.Day)
			if today-p.Day <= storetest.DailyDays {
				require.Equal(t, store.QualityMeasured, p.Quality, "day %s", p.Day)
			} else if p.Quality != store.QualityInterpolated {
				weeks[p.Day.Week()]++
			}
		}
		want := map[store.Date]int{}
		for day := today - 199; day < today-storetest.DailyDays; day++ {
			want[day.Week()] = 1
		}
		require.Equal(t, want, weeks, "one point must be stored for each week")
	})
}

func TestSeed_changesNothingTheSecondTimeAndAcceptsTheSameIDsInTwoOrganisations(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		b := sampleDataset(5).toBatch(db.Clock.Now())
		parent, child := fixedID(900), fixedID(901)
		b.Collections = []backfill.SeedCollection{{ID: parent, Name: "Parent", CreatedAt: 1, Hashtags: []string{"#CAT"}},
			{ID: child, ParentID: &parent, Name: "Child", CreatedAt: 2}}
		b.Accounts[0].Collections = []uuid.UUID{child}
		b.Accounts[0].Videos[0].Collections = []uuid.UUID{parent}
		b.Accounts[0].Tracked, b.Accounts[0].TrackingType = true, new(store.TrackLatest30)
		today := store.DateOf(db.Clock.Now())
		b.Accounts[0].Days = []backfill.FollowerCounts{{Day: today - 1, Followers: new(int64(10))}, {Day: today, Followers: new(int64(12)), Following: new(int64(3))}}

		require.NoError(t, backfill.Seed(t.Context(), o, b))
		require.NoError(t, backfill.Seed(t.Context(), other, b), "two organisations must be able to have records with the same ids")
		once, err := o.OrganisationHistory(t.Context(), today-10, today)
		require.NoError(t, err)
		require.Equal(t, new(int64(12)), once[0].Followers)
		require.Equal(t, new(int64(10)), once[1].Followers)
		require.Equal(t, []*int64{new(int64(3)), nil}, []*int64{once[0].Following, once[1].Following}, "an unknown number must stay unknown")
		require.EqualValues(t, 1, once[0].Accounts)
		require.EqualValues(t, 4, once[0].Videos)

		require.NoError(t, backfill.Seed(t.Context(), o, b))
		twice, err := o.OrganisationHistory(t.Context(), today-10, today)
		require.NoError(t, err)
		require.Equal(t, once, twice)
		require.Len(t, allVideos(t, o), 4)

		c, err := o.Collection(t.Context(), parent, true)
		require.NoError(t, err)
		require.EqualValues(t, 2, c.VideoCount, "the collection must have two videos: one that was added to it, and one with its hashtag")
		c, err = o.Collection(t.Context(), child, true)
		require.NoError(t, err)
		require.EqualValues(t, 4, c.VideoCount, "the collection must contain all videos of the account")
		require.EqualValues(t, 1, c.AccountCount)

		_, err = o.StopVideos(t.Context(), []uuid.UUID{b.Accounts[0].Videos[1].ID})
		require.NoError(t, err)
		require.Len(t, allVideos(t, o), 3)
		require.Len(t, allVideos(t, other), 4)
	})
}

func TestSeed_schedulesTheFirstFetchWithinTwoDays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		b := sampleDataset(3).toBatch(db.Clock.Now())
		b.Accounts[0].Tracked, b.Accounts[0].TrackingType = true, new(store.TrackLatest30)
		require.NoError(t, backfill.Seed(t.Context(), o, b))
		claim := func(kind queue.Kind) []queue.Target {
			c, err := db.Claim(t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, kind, 50, time.Minute, queue.LanePremium))
			require.NoError(t, err)
			return c.Targets
		}
		require.Empty(t, claim("video"))
		collecting, err := db.Queue.CollectingState(t.Context())
		require.NoError(t, err)
		require.ElementsMatch(t, []queue.StatusCount{{Platform: link.TikTok, Kind: queue.KindVideo, Status: queue.FetchOK, Targets: 4},
			{Platform: link.TikTok, Kind: queue.KindAccount, Status: queue.FetchPending, Targets: 1}}, collecting.Statuses)
		db.Clock.Advance(48 * time.Hour)
		targets := claim("video")
		require.Len(t, targets, 4)
		require.EqualValues(t, 1020, *targets[0].Views)
		require.Equal(t, b.Accounts[0].Videos[0].Points[2].At, *targets[0].FetchedAt)
		require.Nil(t, targets[3].Views)
		accounts := claim("account")
		require.Len(t, accounts, 1)
		require.Equal(t, "42", accounts[0].ExternalID)
		require.Equal(t, 30, accounts[0].Depth)
	})
}

func TestSeed_refusesInvalidData(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		now := db.Clock.Now()
		o := storetest.NewOrg(t, db)
		require.ErrorIs(t, backfill.Seed(t.Context(), db.Org(store.NewID()), sampleDataset(2).toBatch(now)), store.ErrOrganisationDeleted)
		require.ErrorContains(t, backfill.Seed(t.Context(), o, sampleDataset(2).toBatch(now.Add(time.Minute))), "points must be in the order of time, at most one on each day, and not in the future")
		b := sampleDataset(2).toBatch(now)
		b.Accounts[0].Videos[0].Points[1].At = b.Accounts[0].Videos[0].Points[0].At
		require.ErrorContains(t, backfill.Seed(t.Context(), o, b), "points must be in the order of time, at most one on each day, and not in the future")
		storetest.Track(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@someone/video/7301234567890000001"))
		require.ErrorIs(t, backfill.Seed(t.Context(), o, sampleDataset(2).toBatch(now)), store.ErrDuplicate)
		require.Len(t, allVideos(t, o), 1, "a refused batch must write nothing")
	})
}
