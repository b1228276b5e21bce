package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

const someone = "https://www.tiktok.com/@someone"

// found are n videos of @someone, the newest first, the first of them uploaded at a time and each other an hour earlier.
func found(t *testing.T, n int, newest time.Time) []store.FoundVideo {
	t.Helper()
	videos := make([]store.FoundVideo, n)
	for i, l := range clips(t, n) {
		at := store.InstantOf(newest.Add(-time.Duration(i) * time.Hour))
		videos[i] = store.FoundVideo{ID: l.ID, Link: l.Canonical, UploadedAt: &at}
	}
	return videos
}

// listed is an account with its videos.
func listed(videos []store.FoundVideo) store.AccountFacts {
	return store.AccountFacts{ID: new("42"), Username: new("someone"), Videos: videos, Listed: true}
}

func TestTrackAccounts_beginsWithTheProfile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), parse(t, someone)
		now := store.InstantOf(db.Clock.Now())
		tracked := follow(t, o, store.TrackLatest200, l)
		require.Equal(t, []store.TrackedAccount{{AccountID: tracked[0].AccountID}}, tracked)
		require.Equal(t, store.Account{OrganisationID: o.ID(), ID: tracked[0].AccountID, Platform: link.TikTok, Username: "someone", HandleCurrent: true,
			Link: l.Canonical, CreatedAt: now, Tracked: true, TrackingType: new(store.TrackLatest200), TrackedAt: &now}, account(t, o, l))

		c := claimOne(t, db, link.TikTok, "account")
		target := c.Targets[0]
		require.Equal(t, store.LaneInteractive, target.Lane)
		require.Equal(t, 200, target.Depth)
		require.Equal(t, "someone", target.Handle)
		facts := store.AccountFacts{ID: new("42"), Username: new("someone"), Name: new("Some One"), Bio: new("Hello"), ProfileLink: new("https://example.com"),
			Followers: new(int64(100)), Following: new(int64(3)), Private: new(true), Listed: true}
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []store.AccountOutcome{accountOutcome(db, target, facts)}))

		a := account(t, o, l)
		require.Equal(t, "42", *a.ExternalID)
		require.Equal(t, "Some One", *a.Name)
		require.Equal(t, "Hello", *a.Bio)
		require.Equal(t, "https://example.com", *a.ProfileLink)
		require.EqualValues(t, 100, *a.LatestFollowersCount)
		require.EqualValues(t, 3, *a.LatestFollowingCount)
		require.True(t, a.Private)
		require.True(t, a.Empty, "it was listed, and has no videos")
		require.Equal(t, c.At, *a.CheckedAt)
		require.Equal(t, c.At, *a.DiscoveredAt)

		db.Clock.Advance(24 * time.Hour)
		again := claimOne(t, db, link.TikTok, "account")
		require.Equal(t, store.LanePremium, again.Targets[0].Lane)
		require.Zero(t, again.Targets[0].Depth, "the past is known")
		require.Equal(t, "42", again.Targets[0].AccountID)
		silent := accountOutcome(db, again.Targets[0], store.AccountFacts{})
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), again, again.At, []store.AccountOutcome{silent}))
		after := account(t, o, l)
		a.CheckedAt = &again.At
		require.Equal(t, a, after, "what is not said stays")
	})
}

func TestTrackAccounts_againChangesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), parse(t, someone)
		first := follow(t, o, store.TrackNewOnly, l)[0]
		before := account(t, o, l)
		db.Clock.Advance(time.Hour)
		again := follow(t, o, store.TrackAll, l)
		require.Equal(t, []store.TrackedAccount{{AccountID: first.AccountID, Existing: true, Already: true}}, again)
		require.Equal(t, before, account(t, o, l), "it keeps its tracking type")

		linked := track(t, o, parse(t, "https://www.tiktok.com/@other/video/7301234567890123456"))
		require.Len(t, linked, 1)
		other := follow(t, o, store.TrackNewOnly, parse(t, "https://www.tiktok.com/@other"))
		require.False(t, other[0].Existing, "it was linked alone, not tracked")
	})
}

func TestTrackAccounts_ofEqualRequestsAtOnceTracksOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const requests = 16
		o := newOrg(t, db)
		links := []link.Link{parse(t, someone), parse(t, "https://www.instagram.com/someone/"), parse(t, "https://www.youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q")}
		var wg sync.WaitGroup
		tracked, errs := make([][]store.TrackedAccount, requests), make([]error, requests)
		for i := range requests {
			wg.Go(func() {
				tracked[i], errs[i] = o.TrackAccounts(t.Context(), store.TrackAccountsRequest{Links: links, Type: store.TrackAll, CollectionNames: []string{"Dogs"}, Enqueue: 3})
			})
		}
		wg.Wait()
		fresh := 0
		for i := range requests {
			require.NoError(t, errs[i])
			for j := range links {
				require.Equal(t, tracked[0][j].AccountID, tracked[i][j].AccountID)
				if !tracked[i][j].Already {
					fresh++
				}
			}
		}
		require.Equal(t, len(links), fresh)
		s, err := o.AccountStatistics(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, len(links), s.Total)
	})
}

func TestTrackAccounts_withUnknownCollectionsTracksNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		mine, foreign := collection(t, o, "Mine", nil), collection(t, newOrg(t, db), "Foreign", nil)
		r := store.TrackAccountsRequest{Links: []link.Link{parse(t, someone)}, Type: store.TrackAll, CollectionIDs: []uuid.UUID{mine.ID, foreign.ID}, Immediate: 1, Enqueue: 1}
		_, err := o.TrackAccounts(t.Context(), r)
		var missing *store.NotFoundError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, []string{foreign.ID.String()}, missing.Names)
		require.Empty(t, claim(t, db, link.TikTok, "account"))
		_, err = o.Account(t.Context(), store.AccountRef{Link: r.Links[0]})
		require.ErrorIs(t, err, store.ErrNotFound)

		r.CollectionIDs, r.CollectionNames = r.CollectionIDs[:1], []string{"Named"}
		_, err = o.TrackAccounts(t.Context(), r)
		require.NoError(t, err)
		labels := account(t, o, r.Links[0]).Labels
		require.Len(t, labels, 2)
		require.Equal(t, store.Label{ID: mine.ID, Name: "Mine"}, labels[0])
		require.Equal(t, "Named", labels[1].Name)
	})
}

func TestDiscovery_takesWhatTheTrackingTypeWants(t *testing.T) {
	t.Parallel()
	for kind, want := range map[store.TrackingType]int{store.TrackLatest30: 30, store.TrackLatest200: 200, store.TrackNewOnly: 0, store.TrackAll: 210} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				o := newOrg(t, db)
				follow(t, o, kind, parse(t, someone))
				older := found(t, 210, db.Clock.Now().Add(-time.Hour))
				deliverAccount(t, db, listed(older))
				require.EqualValues(t, want, list(t, o, store.VideoQuery{}).Total)

				db.Clock.Advance(24 * time.Hour)
				fresh := store.FoundVideo{ID: clip(t, 999).ID, Link: clip(t, 999).Canonical, UploadedAt: new(store.InstantOf(db.Clock.Now().Add(-time.Hour)))}
				deliverAccount(t, db, listed(append([]store.FoundVideo{fresh}, older...)))
				require.EqualValues(t, want+1, list(t, o, store.VideoQuery{}).Total, "what is uploaded later is always taken, and nothing else")
				require.NotEmpty(t, claim(t, db, link.TikTok, "video"), "and its numbers are asked for")

				v := video(t, o, clip(t, 999))
				require.False(t, v.Direct)
				require.Equal(t, account(t, o, parse(t, someone)).ID, *v.LinkedAccountID)
			})
		})
	}
}

func TestDiscovery_leavesAStoppedVideoStopped(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		follow(t, o, store.TrackLatest30, parse(t, someone))
		videos := found(t, 3, db.Clock.Now())
		deliverAccount(t, db, listed(videos))
		stop(t, o, clip(t, 1))
		db.Clock.Advance(24 * time.Hour)
		deliverAccount(t, db, listed(videos))
		require.True(t, video(t, o, clip(t, 1)).Removed)
		require.EqualValues(t, 2, list(t, o, store.VideoQuery{}).Total)
		consistent(t, db, o)
	})
}

func TestStopAccounts_stopsTheVideosThatWereFoundThroughThem(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), parse(t, someone)
		own, adopted := clip(t, 0), clip(t, 1)
		track(t, o, own)
		follow(t, o, store.TrackLatest30, l)
		deliverAccount(t, db, listed(found(t, 4, db.Clock.Now())))
		require.Equal(t, []store.Tracked{{VideoID: video(t, o, adopted).ID, Existing: true, Already: true}}, track(t, o, adopted), "found, and now asked for by itself")
		require.EqualValues(t, 4, list(t, o, store.VideoQuery{}).Total)

		refs := []store.AccountRef{{Link: l}, {ID: store.NewID()}, {Link: parse(t, "https://www.tiktok.com/@nobody")}}
		unmatched, err := o.StopAccounts(t.Context(), refs, true)
		require.NoError(t, err)
		require.Equal(t, refs[1:], unmatched)
		require.True(t, account(t, o, l).Tracked, "all or nothing")

		unmatched, err = o.StopAccounts(t.Context(), refs, false)
		require.NoError(t, err)
		require.Equal(t, refs[1:], unmatched)
		a := account(t, o, l)
		require.True(t, a.Removed)
		require.False(t, a.Tracked)
		require.EqualValues(t, 2, a.TotalVideosTracked)
		for i := range 4 {
			require.Equal(t, i > 1, video(t, o, clip(t, i)).Removed, "video %d", i)
		}
		consistent(t, db, o)
		unmatched, err = o.StopAccounts(t.Context(), refs[:1], false)
		require.NoError(t, err)
		require.Equal(t, refs[:1], unmatched, "it is stopped already")

		db.Clock.Advance(time.Hour)
		require.Equal(t, []store.TrackedAccount{{AccountID: a.ID, Existing: true}}, follow(t, o, store.TrackNewOnly, l))
		require.Equal(t, store.TrackNewOnly, *account(t, o, l).TrackingType)
		s, err := o.AccountStatistics(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Total)
		require.Zero(t, s.Removed)
	})
}

func TestStopAccounts_whileACollectorHoldsTheTargetLetsNothingIn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), parse(t, someone)
		follow(t, o, store.TrackLatest30, l)
		c := claimOne(t, db, link.TikTok, "account")
		_, err := o.StopAccounts(t.Context(), []store.AccountRef{{Link: l}}, true)
		require.NoError(t, err)
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []store.AccountOutcome{accountOutcome(db, c.Targets[0], listed(found(t, 3, db.Clock.Now())))}))
		require.Zero(t, list(t, o, store.VideoQuery{IncludeRemoved: true}).Total)
		require.Nil(t, account(t, o, l).CheckedAt)
	})
}

func TestDiscovery_takesOverARecordThatBoreTheAccountsID(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		c := collection(t, o, "Dogs", nil)
		nameless := parse(t, short) // its author is known by id alone
		track(t, o, nameless)
		measure(t, db, db.Clock.Now(), map[link.Link]store.VideoFacts{nameless: authored("UCLqxVugv74EIW3VWh2NOa3Q", "")})
		linked := accountOf(t, o, nameless)
		_, err := o.AddAccounts(t.Context(), c.ID, []uuid.UUID{linked.ID})
		require.NoError(t, err)

		l := parse(t, "https://www.youtube.com/@someone")
		asked := follow(t, o, store.TrackNewOnly, l)[0]
		require.NotEqual(t, linked.ID, asked.AccountID, "nobody knows yet that they are one")
		claimed := claimOne(t, db, link.YouTube, "account")
		facts := store.AccountFacts{ID: new("UCLqxVugv74EIW3VWh2NOa3Q"), Username: new("someone"), Followers: new(int64(1))}
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), claimed, claimed.At, []store.AccountOutcome{accountOutcome(db, claimed.Targets[0], facts)}))

		a := account(t, o, l)
		require.Equal(t, asked.AccountID, a.ID)
		require.Equal(t, []store.Label{{ID: c.ID, Name: "Dogs"}}, a.Labels)
		require.EqualValues(t, 1, a.TotalVideosTracked)
		require.Equal(t, a.ID, *video(t, o, nameless).LinkedAccountID)
		_, err = o.Account(t.Context(), store.AccountRef{ID: linked.ID})
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestDiscovery_ofOneAccountTrackedUnderItsHandleAndItsID(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		byHandle, byID := parse(t, "https://www.youtube.com/@someone"), parse(t, "https://www.youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q")
		follow(t, o, store.TrackNewOnly, byHandle, byID)
		for range 2 { // the first tells that they are one
			for _, c := range claim(t, db, link.YouTube, "account") {
				var outcomes []store.AccountOutcome
				for _, target := range c.Targets {
					outcomes = append(outcomes, accountOutcome(db, target, store.AccountFacts{ID: new("UCLqxVugv74EIW3VWh2NOa3Q"), Username: new("someone"), Followers: new(int64(10))}))
				}
				require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, outcomes))
			}
			db.Clock.Advance(24 * time.Hour)
		}
		require.Equal(t, account(t, o, byID).ID, account(t, o, byHandle).ID)
		s, err := o.AccountStatistics(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Total, "it counts once")
	})
}

func TestDiscovery_ofManyVideosTakesFewStatements(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		follow(t, o, store.TrackLatest200, parse(t, someone))
		c := claimOne(t, db, link.TikTok, "account")
		videos := found(t, 200, db.Clock.Now())
		db.Guard.Statements()
		require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []store.AccountOutcome{accountOutcome(db, c.Targets[0], listed(videos))}))
		require.Less(t, len(db.Guard.Statements()), 30)
		require.EqualValues(t, 200, list(t, o, store.VideoQuery{}).Total)
	})
}

func TestRefresh_isAllowedEachFourHours(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l, a := newOrg(t, db), clip(t, 1), parse(t, someone)
		track(t, o, l)
		follow(t, o, store.TrackNewOnly, a)
		refresh := map[store.Kind]func() (store.Refreshed, error){
			"video":   func() (store.Refreshed, error) { return o.RefreshVideo(t.Context(), store.VideoRef{Link: l}) },
			"account": func() (store.Refreshed, error) { return o.RefreshAccount(t.Context(), store.AccountRef{Link: a}) },
		}
		for kind, ask := range refresh {
			r, err := ask()
			require.NoError(t, err)
			require.Equal(t, store.Refreshed{Scheduled: true}, r, "%s: never fetched", kind)
		}
		deliver(t, db, link.TikTok, views(1))
		deliverAccount(t, db, store.AccountFacts{ID: new("42"), Username: new("someone")})
		at := store.InstantOf(db.Clock.Now())
		db.Clock.Advance(store.RefreshPause - time.Microsecond)
		for kind, ask := range refresh {
			r, err := ask()
			require.NoError(t, err)
			require.Equal(t, store.Refreshed{UpdatedAt: &at, After: at.Add(store.RefreshPause)}, r, kind)
			require.Empty(t, claim(t, db, link.TikTok, kind))
		}
		db.Clock.Advance(time.Microsecond)
		for kind, ask := range refresh {
			r, err := ask()
			require.NoError(t, err)
			require.Equal(t, store.Refreshed{Scheduled: true, UpdatedAt: &at}, r, kind)
			require.Equal(t, store.LaneInteractive, claimOne(t, db, link.TikTok, kind).Targets[0].Lane)
		}
		require.Len(t, storetest.Column[string](t, db, "SELECT external_id FROM fetch_targets"), 2, "the account's target is still the one of its handle")
	})
}

func TestRefresh_ofWhatIsNotTrackedIsNotFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), clip(t, 1)
		track(t, o, l)
		stop(t, o, l)
		for _, ref := range []store.VideoRef{{Link: l}, {ID: store.NewID()}, {Link: clip(t, 2)}} {
			_, err := o.RefreshVideo(t.Context(), ref)
			require.ErrorIs(t, err, store.ErrNotFound)
			require.ErrorContains(t, err, ref.String())
		}
		for _, ref := range []store.AccountRef{{Link: parse(t, someone)}, {ID: store.NewID()}, {Link: parse(t, "https://www.tiktok.com/@nobody")}} {
			_, err := o.RefreshAccount(t.Context(), ref) // @someone is linked alone
			require.ErrorIs(t, err, store.ErrNotFound)
			require.ErrorContains(t, err, ref.String())
		}
	})
}
