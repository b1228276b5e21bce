package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// authored are the facts of a video by an author; "" is what the source does not say.
func authored(id, handle string) store.VideoFacts {
	f := store.VideoFacts{Views: new(int64(1))}
	if id != "" {
		f.AccountID = &id
	}
	if handle != "" {
		f.Username = &handle
	}
	return f
}

func accountOf(t *testing.T, o *store.Org, l link.Link) store.Account {
	t.Helper()
	id := video(t, o, l).LinkedAccountID
	require.NotNil(t, id)
	a, err := o.Account(t.Context(), store.AccountRef{ID: *id})
	require.NoError(t, err)
	return a
}

func TestAccount_isFoundByHandleUntilItsOwnIDIsKnown(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		links := clips(t, 3) // of @someone, as their links say
		track(t, o, links...)
		linked := accountOf(t, o, links[0])
		require.Nil(t, linked.ExternalID)

		at := db.Clock.Now()
		measure(t, db, at, map[link.Link]store.VideoFacts{links[0]: authored("", "someone")})
		measure(t, db, at, map[link.Link]store.VideoFacts{links[1]: authored("42", "someone")})
		measure(t, db, at, map[link.Link]store.VideoFacts{links[2]: authored("42", "")})
		for _, l := range links {
			a := accountOf(t, o, l)
			require.Equal(t, linked.ID, a.ID)
			require.Equal(t, "42", *a.ExternalID)
			require.Equal(t, "someone", a.Username)
		}
	})
}

func TestAccount_keepsItsRecordUnderANewHandle(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), clip(t, 1)
		track(t, o, l)
		measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{l: authored("42", "someone")})
		before := accountOf(t, o, l)
		db.Clock.Advance(time.Hour)
		measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{l: authored("42", "someone.else")})
		after := accountOf(t, o, l)
		require.Equal(t, before.ID, after.ID)
		require.Equal(t, "someone.else", after.Username)
		require.Equal(t, "https://www.tiktok.com/@someone.else", after.Link)
		require.Equal(t, "someone.else", video(t, o, l).Username)
		_, err := o.Account(t.Context(), store.AccountRef{Link: parse(t, "https://www.tiktok.com/@someone")})
		require.ErrorIs(t, err, store.ErrNotFound, "nobody bears the old handle")
	})
}

func TestAccount_losesAHandleThatAnotherBears(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, old, fresh := newOrg(t, db), clip(t, 1), clip(t, 2)
		track(t, o, old, fresh)
		at := db.Clock.Now()
		measure(t, db, at, map[link.Link]store.VideoFacts{old: authored("42", "someone")})
		measure(t, db, at, map[link.Link]store.VideoFacts{fresh: authored("43", "someone")})
		was, is := accountOf(t, o, old), accountOf(t, o, fresh)
		require.NotEqual(t, was.ID, is.ID)
		require.False(t, was.HandleCurrent)
		require.True(t, is.HandleCurrent)
		require.Equal(t, is.ID, account(t, o, parse(t, "https://www.tiktok.com/@someone")).ID)
		require.EqualValues(t, 1, was.TotalVideosTracked)
		require.EqualValues(t, 1, is.TotalVideosTracked)

		// And it goes back.
		measure(t, db, at.Add(time.Hour), map[link.Link]store.VideoFacts{old: authored("42", "someone")})
		require.True(t, accountOf(t, o, old).HandleCurrent)
		require.False(t, accountOf(t, o, fresh).HandleCurrent)
	})
}

func TestAccounts_canSwapTheirHandles(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, a, b := newOrg(t, db), clip(t, 1), clip(t, 2)
		track(t, o, a, b)
		at := db.Clock.Now()
		measure(t, db, at, map[link.Link]store.VideoFacts{a: authored("42", "left"), b: authored("43", "right")})
		ids := []uuid.UUID{accountOf(t, o, a).ID, accountOf(t, o, b).ID}
		for i, handles := range [][2]string{{"right", "left"}, {"left", "middle"}, {"middle", "left"}, {"left", "left"}} {
			measure(t, db, at.Add(time.Duration(i+1)*time.Hour), map[link.Link]store.VideoFacts{a: authored("42", handles[0]), b: authored("43", handles[1])})
			one, two := accountOf(t, o, a), accountOf(t, o, b)
			require.Equal(t, []uuid.UUID{one.ID, two.ID}, ids, "%v", handles)
			require.Equal(t, [2]string{one.Username, two.Username}, handles)
			require.NotEqual(t, handles[0] == handles[1], one.HandleCurrent && two.HandleCurrent, "%v", handles)
		}
	})
}

func TestAccount_isToldApartByPlatform(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, tiktok, youtube := newOrg(t, db), clip(t, 1), parse(t, short)
		track(t, o, tiktok, youtube)
		measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{tiktok: authored("42", "someone"), youtube: authored("42", "someone")})
		require.NotEqual(t, accountOf(t, o, tiktok).ID, accountOf(t, o, youtube).ID)
	})
}

func TestAccount_withoutAHandleHasTheLinkOfItsID(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), parse(t, short)
		track(t, o, l)
		measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{l: authored("UCLqxVugv74EIW3VWh2NOa3Q", "")})
		a := accountOf(t, o, l)
		require.Equal(t, "https://www.youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q", a.Link)
		require.Empty(t, a.Username)
		require.False(t, a.HandleCurrent)

		byID, err := o.Account(t.Context(), store.AccountRef{Link: parse(t, "https://www.youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q/videos")})
		require.NoError(t, err)
		require.Equal(t, a.ID, byID.ID)
	})
}

func TestAccount_ofAnUnknownAuthorIsNotMade(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), parse(t, short)
		track(t, o, l)
		measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{l: views(1)})
		require.Nil(t, video(t, o, l).LinkedAccountID)
		require.Zero(t, video(t, o, l).OutlierMultiplier, "there is no account to compare with")
		require.Empty(t, storetest.Column[string](t, db, "SELECT username FROM accounts"))
	})
}

func TestAccount_ofFacebookKeepsItsSuffix(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), parse(t, "https://www.facebook.com/reel/1234567890123456")
		track(t, o, l)
		measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{l: authored("100", "some page~100")})
		require.Equal(t, "some page~100", video(t, o, l).Username)
		require.Equal(t, "some page~100", accountOf(t, o, l).Username)
		require.EqualValues(t, 1, list(t, o, store.VideoQuery{Username: new("some page~100")}).Total)
	})
}

func TestAccount_thatTwoCollectorsMeetAtOnceIsMadeOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, one, two := newOrg(t, db), parse(t, short), parse(t, "https://www.youtube.com/shorts/jNQXAC9IVRw")
		track(t, o, one, two)
		finish := meanwhile(t, db, "handle_current", func(s *store.Store) {
			f := authored("UC1", "someone")
			require.NoError(t, store.NewWriter(s).Acknowledge(context.WithoutCancel(t.Context()), store.Claim{}, store.InstantOf(db.Clock.Now()), []store.Outcome{
				outcome(db, store.Target{Platform: link.YouTube, Kind: "video", ExternalID: two.ID}, f)}))
		})
		measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{one: authored("UC1", "someone")})
		finish()
		require.Equal(t, accountOf(t, o, one).ID, accountOf(t, o, two).ID)
		require.EqualValues(t, 2, accountOf(t, o, one).TotalVideosTracked)
	})
}
