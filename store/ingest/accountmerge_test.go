package ingest_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// factsAfterRename returns what a source reports about the account @someone after its rename to @renamed.
func factsAfterRename(videos []ingest.FoundVideo, followers int64) ingest.AccountFacts {
	return ingest.AccountFacts{ID: new("42"), Username: new("renamed"), Followers: &followers, Following: new(int64(3)), Videos: videos, Listed: true}
}

func accountByID(t *testing.T, o *store.Org, id uuid.UUID) store.Account {
	t.Helper()
	a, err := o.Account(t.Context(), store.Ref{ID: id})
	require.NoError(t, err)
	return a
}

// followersByDay returns an account's number of followers on each day that has a point, the newest day first.
func followersByDay(t *testing.T, db *storetest.DB, o *store.Org, id uuid.UUID) []int64 {
	t.Helper()
	points, err := o.AccountHistory(t.Context(), store.Ref{ID: id}, storetest.Today(db)-400, storetest.Today(db))
	require.NoError(t, err)
	followers := make([]int64, len(points))
	for i, p := range points {
		require.NotNil(t, p.Followers, "on %s", p.Day)
		followers[i] = *p.Followers
	}
	return followers
}

// requireOneTrackedAccount checks that the organisation has exactly one tracked account, with the given id and number of followers, and one
// subscription to that account.
func requireOneTrackedAccount(t *testing.T, db *storetest.DB, o *store.Org, id uuid.UUID, followers int64) {
	t.Helper()
	s, err := o.AccountStatistics(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, s.Total)
	require.Zero(t, s.Removed)
	require.Equal(t, []string{id.String()}, storetest.Column[string](t, db,
		"SELECT CAST(subject_id AS text) FROM fetch_subscriptions WHERE organisation_id = ? AND kind = 'account' AND external_id = '42'", o.ID()))
	require.Len(t, storetest.Column[string](t, db, "SELECT external_id FROM fetch_subscriptions WHERE organisation_id = ? AND kind = 'account'", o.ID()), 1)
	days, err := o.OrganisationHistory(t.Context(), storetest.Today(db), storetest.Today(db))
	require.NoError(t, err)
	require.EqualValues(t, 1, days[0].Accounts)
	require.Equal(t, &followers, days[0].Followers)
	require.Equal(t, new(int64(3)), days[0].Following)
	storetest.RequireConsistent(t, db, o)
}

func TestMergeAccounts_keepsTheOlderRecordAfterARename(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		c := storetest.Collection(t, o, "Dogs", nil)
		videos := storetest.FoundVideos(t, 3, db.Clock.Now())
		id := storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))[0].ID
		for n := range 3 {
			facts := storetest.ListedAccount(videos)
			facts.Followers, facts.Following = new(int64(100+n)), new(int64(3))
			storetest.DeliverAccount(t, db, facts)
			db.Clock.Advance(24 * time.Hour)
		}
		storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("42"), Followers: new(int64(103))})
		before := accountByID(t, o, id)

		db.Clock.Advance(time.Hour) // the account @someone is due again only after a day
		second := storetest.Follow(t, o, store.TrackAll, storetest.ParseLink(t, renamed))[0]
		require.NotEqual(t, id, second.ID, "the records must stay separate until a source reports that both handles belong to one account")
		_, err := o.AddAccounts(t.Context(), c.ID, []uuid.UUID{second.ID})
		require.NoError(t, err)
		db.Exec(t, "UPDATE accounts SET listed_depth = 200 WHERE organisation_id = ? AND id = ?", o.ID(), second.ID)
		fresh := ingest.FoundVideo{ID: storetest.VideoLink(t, 999).ID, Link: storetest.VideoLink(t, 999).Canonical, UploadedAt: new(store.InstantOf(db.Clock.Now()))}
		storetest.DeliverAccount(t, db, factsAfterRename(append([]ingest.FoundVideo{fresh}, videos...), 110))

		a := storetest.AccountByLink(t, o, storetest.ParseLink(t, renamed))
		require.Equal(t, id, a.ID, "the account must keep the id that it had before the rename")
		require.Equal(t, before.TrackedAt, a.TrackedAt)
		require.Equal(t, store.TrackAll, *a.TrackingType, "the type that tracks more existing videos must stay")
		require.EqualValues(t, 110, *a.LatestFollowersCount)
		require.Equal(t, []*store.Label{{ID: c.ID, Name: "Dogs"}}, a.Labels)
		require.Equal(t, []int64{110, 102, 101, 100}, followersByDay(t, db, o, id))
		require.EqualValues(t, 4, a.TotalVideosTracked)
		require.Equal(t, id, *storetest.VideoOf(t, o, storetest.VideoLink(t, 999)).LinkedAccountID)
		_, err = o.Account(t.Context(), store.Ref{ID: second.ID})
		require.ErrorIs(t, err, store.ErrNotFound)
		requireOneTrackedAccount(t, db, o, id, 110)
		require.Equal(t, []int64{200}, storetest.Column[int64](t, db, "SELECT listed_depth FROM accounts WHERE organisation_id = ? AND id = ?", o.ID(), id))

		db.Clock.Advance(25 * time.Hour)
		storetest.DeliverAccount(t, db, factsAfterRename(nil, 120))
		requireOneTrackedAccount(t, db, o, id, 120)
	})
}

// A source of videos can report the id of an account together with its old handle.
func TestMergeAccounts_givesTheVideosOfBothRecordsTheSameHandle(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, old := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, old)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{old: storetest.FactsWithAuthor("42", "someone")})
		storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, renamed))
		storetest.DeliverAccount(t, db, factsAfterRename(nil, 100))
		require.Equal(t, "renamed", storetest.AccountOf(t, o, old).Username)
		require.Equal(t, "renamed", storetest.VideoOf(t, o, old).Username)
		require.EqualValues(t, 1, storetest.ListVideos(t, o, store.VideoQuery{Username: new("renamed")}).Total)
		require.Equal(t, []string{"renamed"}, storetest.Column[string](t, db, "SELECT handle FROM fetch_subscriptions WHERE organisation_id = ? AND kind = 'video'", o.ID()))
		storetest.RequireConsistent(t, db, o)
	})
}

// Both requests were accepted before a source reported that the two links belong to one account. So the existing videos that the second request
// asked for must be tracked, even if the first request asked for none.
func TestMergeAccounts_tracksTheExistingVideosThatEitherRequestAskedFor(t *testing.T) {
	t.Parallel()
	for name, types := range map[string][2]store.TrackingType{
		"the second request asks for more": {store.TrackNewOnly, store.TrackLatest30}, "the first request asks for more": {store.TrackLatest30, store.TrackNewOnly},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				o := storetest.NewOrg(t, db)
				videos := storetest.FoundVideos(t, 40, db.Clock.Now().AddDate(0, 0, -9))
				first := storetest.Follow(t, o, types[0], storetest.ParseLink(t, storetest.AccountURL))[0].ID
				began := accountByID(t, o, first).TrackedAt
				storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("42"), Username: new("someone"), Followers: new(int64(1)), Following: new(int64(3)), Listed: true})
				db.Clock.Advance(time.Hour) // the account @someone is due again only after a day
				storetest.Follow(t, o, types[1], storetest.ParseLink(t, renamed))
				storetest.DeliverAccount(t, db, factsAfterRename(videos, 100))
				for range 3 { // the first lists of an account can be short
					db.Clock.Advance(25 * time.Hour)
					storetest.DeliverAccount(t, db, factsAfterRename(videos, 100))
				}
				a := accountByID(t, o, first)
				require.Equal(t, began, a.TrackedAt)
				require.Equal(t, store.TrackLatest30, *a.TrackingType)
				require.EqualValues(t, map[bool]int{true: 30, false: 0}[types[1] == store.TrackLatest30], storetest.ListVideos(t, o, store.VideoQuery{}).Total)
				requireOneTrackedAccount(t, db, o, first, 100)
			})
		})
	}
}

func TestMergeAccounts_keepsTheOlderRecordIfThatRecordIsFetchedFirst(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		id := storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))[0].ID
		facts := storetest.ListedAccount(storetest.FoundVideos(t, 3, db.Clock.Now()))
		facts.Followers, facts.Following = new(int64(100)), new(int64(3))
		storetest.DeliverAccount(t, db, facts)

		db.Clock.Advance(25 * time.Hour)
		storetest.Follow(t, o, store.TrackAll, storetest.ParseLink(t, renamed))
		answered := false
		for _, c := range storetest.Claim(t, db, link.TikTok, "account") {
			for _, target := range c.Targets {
				if target.ExternalID == "42" {
					answered = true
					require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, target, factsAfterRename(nil, 110))}))
				}
			}
		}
		require.True(t, answered)
		require.Equal(t, id, storetest.AccountByLink(t, o, storetest.ParseLink(t, renamed)).ID)
		requireOneTrackedAccount(t, db, o, id, 110)
		require.Equal(t, []int64{110, 100}, followersByDay(t, db, o, id))
	})
}

func TestMergeAccounts_tracksAStoppedRecordAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		videos := storetest.FoundVideos(t, 5, db.Clock.Now())
		id := storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))[0].ID
		facts := storetest.ListedAccount(videos)
		facts.Followers, facts.Following = new(int64(100)), new(int64(3))
		storetest.DeliverAccount(t, db, facts)
		_, err := o.StopAccounts(t.Context(), []uuid.UUID{id})
		require.NoError(t, err)

		db.Clock.Advance(48 * time.Hour)
		storetest.Follow(t, o, store.TrackLatest200, storetest.ParseLink(t, renamed))
		began := store.InstantOf(db.Clock.Now())
		storetest.DeliverAccount(t, db, factsAfterRename(videos, 110))
		a := storetest.AccountByLink(t, o, storetest.ParseLink(t, renamed))
		require.Equal(t, id, a.ID)
		require.True(t, a.Tracked)
		require.False(t, a.Removed)
		require.Equal(t, store.TrackLatest200, *a.TrackingType, "tracking the account again must set the new tracking type")
		require.Equal(t, began, *a.TrackedAt)
		require.Equal(t, 5, storetest.TrackedVideos(t, o), "the videos of the account must be tracked again")
		require.Equal(t, []int64{110, 100}, followersByDay(t, db, o, id))
		requireOneTrackedAccount(t, db, o, id, 110)
		db.Clock.Advance(25 * time.Hour)
		storetest.DeliverAccount(t, db, factsAfterRename(videos, 120))
		require.EqualValues(t, 120, *accountByID(t, o, id).LatestFollowersCount)
	})
}

func TestMergeAccounts_keepsTheHistoryOfAnUntrackedRecord(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, nameless := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL)
		storetest.Track(t, o, nameless)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{nameless: storetest.FactsWithAuthor("UCLqxVugv74EIW3VWh2NOa3Q", "")})
		before, err := o.AccountHistory(t.Context(), store.Ref{ID: storetest.AccountOf(t, o, nameless).ID}, storetest.Today(db), storetest.Today(db))
		require.NoError(t, err)
		require.Len(t, before, 1)

		db.Clock.Advance(48 * time.Hour)
		asked := storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, "https://www.youtube.com/@someone"))[0].ID
		c := storetest.ClaimOne(t, db, link.YouTube, "account")
		facts := ingest.AccountFacts{ID: new("UCLqxVugv74EIW3VWh2NOa3Q"), Username: new("someone"), Followers: new(int64(1))}
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], facts)}))
		days, err := o.AccountHistory(t.Context(), store.Ref{ID: asked}, storetest.Today(db)-5, storetest.Today(db))
		require.NoError(t, err)
		require.Len(t, days, 2)
		require.Equal(t, before[0], days[1])
	})
}

func TestMergeAccounts_keepsTheEarlierMembershipOfACollection(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		c, l, first := storetest.Collection(t, o, "Campaign", nil), storetest.VideoLink(t, 1), storetest.Today(db)
		storetest.Track(t, o, l)
		facts := storetest.FactsWithAuthor("42", "someone")
		facts.Views = new(int64(1000))
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: facts})
		_, err := o.AddAccounts(t.Context(), c.ID, []uuid.UUID{storetest.AccountOf(t, o, l).ID})
		require.NoError(t, err)
		db.Clock.Advance(24 * time.Hour)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.Views(3000)})
		viewsByDay := func() (views []int64) {
			totals, err := o.CollectionTotals(t.Context(), store.CollectionTotalsQuery{Collection: c.ID, From: first, To: first + 1})
			require.NoError(t, err)
			for _, d := range totals.Days {
				views = append(views, d.Views)
			}
			return views
		}
		second := storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, "https://www.tiktok.com/@renamed"))[0]
		_, err = o.AddAccounts(t.Context(), c.ID, []uuid.UUID{second.ID})
		require.NoError(t, err)
		require.Equal(t, []int64{1000, 3000}, viewsByDay())
		storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("42"), Username: new("renamed"), Followers: new(int64(5)), Following: new(int64(3))})
		require.Equal(t, second.ID, storetest.AccountOf(t, o, l).ID, "the records must be merged")
		require.Equal(t, []int64{1000, 3000}, viewsByDay())
	})
}

func TestMergeAccounts_addsUpTheHistoriesOfBothRecords(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, first := storetest.NewOrg(t, db), storetest.Today(db)
		one, two := storetest.VideoLink(t, 1), storetest.ParseLink(t, "https://www.tiktok.com/video/7301234567899999999")
		account := storetest.ParseLink(t, storetest.AccountURL)
		storetest.Follow(t, o, store.TrackNewOnly, account)
		storetest.Track(t, o, one, two)
		byID := func(views int64) ingest.VideoFacts {
			facts := storetest.FactsWithAuthor("42", "")
			facts.Views = &views
			return facts
		}
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{one: storetest.Views(1000), two: byID(5)})
		require.NotEqual(t, storetest.AccountOf(t, o, one).ID, storetest.AccountOf(t, o, two).ID, "one record has only the handle, and the other record only the id")
		db.Clock.Advance(24 * time.Hour)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{two: byID(6)})
		db.Clock.Advance(24 * time.Hour)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{one: storetest.Views(1100), two: byID(7)})
		storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("42"), Username: new("someone"), Followers: new(int64(5))})
		points, err := o.AccountHistory(t.Context(), store.Ref{Link: account}, first, first+2)
		require.NoError(t, err)
		require.Len(t, points, 3)
		for i, views := range []int64{1107, 1006, 1005} {
			require.EqualValues(t, 2, points[i].Videos)
			require.Equal(t, views, *points[i].Views)
			require.NotEqual(t, store.QualityCorrected, points[i].Quality)
		}
		require.EqualValues(t, 5, *points[0].Followers)
		require.Equal(t, []int64{0, 1, 102}, storetest.Column[int64](t, db, "SELECT views_gained FROM account_days ORDER BY day"))
		require.Equal(t, []int64{102}, storetest.Column[int64](t, db, "SELECT views_gained FROM accounts"))
	})
}

func TestMergeAccounts_forgetsGainsThatCannotBeComparedWithLaterOnes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		one, two := storetest.VideoLink(t, 1), storetest.ParseLink(t, "https://www.tiktok.com/video/7301234567899999999")
		storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, storetest.AccountURL))
		storetest.Track(t, o, one, two)
		byID := storetest.FactsWithAuthor("42", "")
		byID.Views = new(int64(5))
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{one: storetest.Views(1000)})
		db.Clock.Advance(24 * time.Hour)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{one: storetest.Views(1400), two: byID})
		// An earlier release stores no gains.
		db.Exec(t, "UPDATE account_days SET views_gained = NULL WHERE account_id = ?", storetest.AccountOf(t, o, two).ID)
		db.Exec(t, "UPDATE accounts SET views_gained = NULL WHERE id = ?", storetest.AccountOf(t, o, two).ID)
		db.Clock.Advance(8 * 24 * time.Hour)
		storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("42"), Username: new("someone"), Followers: new(int64(5))})
		require.Equal(t, storetest.AccountOf(t, o, one).ID, storetest.AccountOf(t, o, two).ID)
		require.Nil(t, storetest.AccountOf(t, o, one).ViewsGained7d, "the gain of one of the two records is not known")
	})
}
