package ingest_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestAccount_isFoundByItsHandleUntilItsPlatformIDIsKnown(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		links := storetest.VideoLinks(t, 3) // links with the handle @someone
		storetest.Track(t, o, links...)
		linked := storetest.AccountOf(t, o, links[0])
		require.Nil(t, linked.ExternalID)

		at := db.Clock.Now()
		storetest.Measure(t, db, at, map[link.Link]ingest.VideoFacts{links[0]: storetest.FactsWithAuthor("", "someone")})
		storetest.Measure(t, db, at, map[link.Link]ingest.VideoFacts{links[1]: storetest.FactsWithAuthor("42", "someone")})
		storetest.Measure(t, db, at, map[link.Link]ingest.VideoFacts{links[2]: storetest.FactsWithAuthor("42", "")})
		for _, l := range links {
			a := storetest.AccountOf(t, o, l)
			require.Equal(t, linked.ID, a.ID)
			require.Equal(t, "42", *a.ExternalID)
			require.Equal(t, "someone", a.Username)
		}
	})
}

func TestAccount_keepsItsRecordIfItsHandleChanges(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.FactsWithAuthor("42", "someone")})
		before := storetest.AccountOf(t, o, l)
		db.Clock.Advance(time.Hour)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.FactsWithAuthor("42", "someone.else")})
		after := storetest.AccountOf(t, o, l)
		require.Equal(t, before.ID, after.ID)
		require.Equal(t, "someone.else", after.Username)
		require.Equal(t, "https://www.tiktok.com/@someone.else", after.Link)
		require.Equal(t, "someone.else", storetest.VideoOf(t, o, l).Username)
		_, err := o.Account(t.Context(), store.Ref{Link: storetest.ParseLink(t, "https://www.tiktok.com/@someone")})
		require.ErrorIs(t, err, store.ErrNotFound, "no account may have the old handle")
	})
}

func TestAccount_losesAHandleThatAnotherAccountTakes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, old, fresh := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.VideoLink(t, 2)
		storetest.Track(t, o, old, fresh)
		at := db.Clock.Now()
		storetest.Measure(t, db, at, map[link.Link]ingest.VideoFacts{old: storetest.FactsWithAuthor("42", "someone")})
		storetest.Measure(t, db, at, map[link.Link]ingest.VideoFacts{fresh: storetest.FactsWithAuthor("43", "someone")})
		was, is := storetest.AccountOf(t, o, old), storetest.AccountOf(t, o, fresh)
		require.NotEqual(t, was.ID, is.ID)
		require.False(t, was.HandleCurrent)
		require.True(t, is.HandleCurrent)
		require.Equal(t, is.ID, storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@someone")).ID)
		require.EqualValues(t, 1, was.TotalVideosTracked)
		require.EqualValues(t, 1, is.TotalVideosTracked)

		// The handle goes back to the first account.
		storetest.Measure(t, db, at.Add(time.Hour), map[link.Link]ingest.VideoFacts{old: storetest.FactsWithAuthor("42", "someone")})
		require.True(t, storetest.AccountOf(t, o, old).HandleCurrent)
		require.False(t, storetest.AccountOf(t, o, fresh).HandleCurrent)
	})
}

func TestAccounts_canSwapTheirHandles(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, a, b := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.VideoLink(t, 2)
		storetest.Track(t, o, a, b)
		at := db.Clock.Now()
		storetest.Measure(t, db, at, map[link.Link]ingest.VideoFacts{a: storetest.FactsWithAuthor("42", "left"), b: storetest.FactsWithAuthor("43", "right")})
		ids := []uuid.UUID{storetest.AccountOf(t, o, a).ID, storetest.AccountOf(t, o, b).ID}
		for i, handles := range [][2]string{{"right", "left"}, {"left", "middle"}, {"middle", "left"}, {"left", "left"}} {
			storetest.Measure(t, db, at.Add(time.Duration(i+1)*time.Hour), map[link.Link]ingest.VideoFacts{a: storetest.FactsWithAuthor("42", handles[0]), b: storetest.FactsWithAuthor("43", handles[1])})
			one, two := storetest.AccountOf(t, o, a), storetest.AccountOf(t, o, b)
			require.Equal(t, []uuid.UUID{one.ID, two.ID}, ids, "%v", handles)
			require.Equal(t, [2]string{one.Username, two.Username}, handles)
			require.NotEqual(t, handles[0] == handles[1], one.HandleCurrent && two.HandleCurrent, "%v", handles)
		}
	})
}

func TestAccount_canTakeAHandleThatItsOwnerGivesUpInTheSameBatch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, a, b := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.VideoLink(t, 2)
		at := db.Clock.Now()
		// The records are written in the order of their ids. The record of b has the lower id, because it was made first.
		for _, v := range []struct {
			video link.Link
			facts ingest.VideoFacts
		}{{b, storetest.FactsWithAuthor("43", "other")}, {a, storetest.FactsWithAuthor("42", "famous")}} {
			storetest.Track(t, o, v.video)
			storetest.Measure(t, db, at, map[link.Link]ingest.VideoFacts{v.video: v.facts})
		}
		storetest.Measure(t, db, at.Add(time.Hour), map[link.Link]ingest.VideoFacts{a: storetest.FactsWithAuthor("42", "renamed"), b: storetest.FactsWithAuthor("43", "famous")})
		require.Equal(t, "renamed", storetest.AccountOf(t, o, a).Username)
		require.Equal(t, "famous", storetest.AccountOf(t, o, b).Username)
		storetest.Measure(t, db, at.Add(2*time.Hour), map[link.Link]ingest.VideoFacts{a: storetest.FactsWithAuthor("42", "famous"), b: storetest.FactsWithAuthor("43", "renamed")})
		require.Equal(t, "famous", storetest.AccountOf(t, o, a).Username)
		require.Equal(t, "renamed", storetest.AccountOf(t, o, b).Username)
	})
}

func TestAccount_hasASeparateRecordForEachPlatform(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, tiktok, youtube := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.ParseLink(t, storetest.YouTubeURL)
		storetest.Track(t, o, tiktok, youtube)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{tiktok: storetest.FactsWithAuthor("42", "someone"), youtube: storetest.FactsWithAuthor("42", "someone")})
		require.NotEqual(t, storetest.AccountOf(t, o, tiktok).ID, storetest.AccountOf(t, o, youtube).ID)
	})
}

func TestAccount_hasALinkWithItsIDIfItHasNoHandle(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL)
		storetest.Track(t, o, l)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.FactsWithAuthor("UCLqxVugv74EIW3VWh2NOa3Q", "")})
		a := storetest.AccountOf(t, o, l)
		require.Equal(t, "https://www.youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q", a.Link)
		require.Empty(t, a.Username)
		require.False(t, a.HandleCurrent)

		byID, err := o.Account(t.Context(), store.Ref{Link: storetest.ParseLink(t, "https://www.youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q/videos")})
		require.NoError(t, err)
		require.Equal(t, a.ID, byID.ID)
	})
}

func TestAccount_isNotCreatedIfTheAuthorOfAVideoIsUnknown(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL)
		storetest.Track(t, o, l)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.Views(1)})
		require.Nil(t, storetest.VideoOf(t, o, l).LinkedAccountID)
		require.Nil(t, storetest.VideoOf(t, o, l).OutlierMultiplier, "the outlier multiplier must be unknown without an account")
		require.Empty(t, storetest.Column[string](t, db, "SELECT username FROM accounts"))
	})
}

func TestFacebookAccount_keepsTheIDSuffixOfItsUsername(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, "https://www.facebook.com/reel/1234567890123456")
		storetest.Track(t, o, l)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.FactsWithAuthor("100", "some page~100")})
		require.Equal(t, "some page~100", storetest.VideoOf(t, o, l).Username)
		require.Equal(t, "some page~100", storetest.AccountOf(t, o, l).Username)
		require.EqualValues(t, 1, storetest.ListVideos(t, o, store.VideoQuery{Username: new("some page~100")}).Total)
	})
}

func TestAccount_isCreatedOnceByConcurrentCollectors(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, one, two := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL), storetest.ParseLink(t, "https://www.youtube.com/shorts/jNQXAC9IVRw")
		storetest.Track(t, o, one, two)
		finish := storetest.RunBeforeStatement(t, db, "handle_current", func(s *store.Store) {
			f := storetest.FactsWithAuthor("UC1", "someone")
			require.NoError(t, ingest.New(s).Acknowledge(context.WithoutCancel(t.Context()), queue.Claim{}, store.InstantOf(db.Clock.Now()), []ingest.Outcome{
				storetest.Outcome(db, queue.Target{Platform: link.YouTube, Kind: "video", ExternalID: two.ID}, f)}))
		})
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{one: storetest.FactsWithAuthor("UC1", "someone")})
		finish()
		require.Equal(t, storetest.AccountOf(t, o, one).ID, storetest.AccountOf(t, o, two).ID)
		require.EqualValues(t, 2, storetest.AccountOf(t, o, one).TotalVideosTracked)
	})
}
