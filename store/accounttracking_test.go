package store_test

import (
	"sync"
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

func TestTrackAccounts_schedulesAFetchOfTheProfile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
		now := store.InstantOf(db.Clock.Now())
		tracked := storetest.Follow(t, o, store.TrackLatest200, l)
		require.Equal(t, []store.Tracked{{ID: tracked[0].ID}}, tracked)
		require.Equal(t, store.Account{OrganisationID: o.ID(), ID: tracked[0].ID, Platform: link.TikTok, Username: "someone", HandleCurrent: true,
			Link: l.Canonical, CreatedAt: now, Tracked: true, TrackingType: new(store.TrackLatest200), TrackedAt: &now,
			FetchState: store.FetchState{FetchStatus: queue.FetchPending, NextFetchAt: &now}}, storetest.AccountByLink(t, o, l))

		c := storetest.ClaimOne(t, db, link.TikTok, "account")
		target := c.Targets[0]
		require.Equal(t, queue.LaneInteractive, target.Lane)
		require.Equal(t, 200, target.Depth)
		require.Equal(t, "someone", target.Handle)
		facts := ingest.AccountFacts{ID: new("42"), Username: new("someone"), Name: new("Some One"), Bio: new("Hello"), ProfileLink: new("https://example.com"),
			Followers: new(int64(100)), Following: new(int64(3)), Private: new(true), Listed: true}
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, target, facts)}))

		a := storetest.AccountByLink(t, o, l)
		require.Equal(t, "42", *a.ExternalID)
		require.Equal(t, "Some One", *a.Name)
		require.Equal(t, "Hello", *a.Bio)
		require.Equal(t, "https://example.com", *a.ProfileLink)
		require.EqualValues(t, 100, *a.LatestFollowersCount)
		require.EqualValues(t, 3, *a.LatestFollowingCount)
		require.True(t, a.Private)
		require.True(t, a.Empty, "an account whose list of videos is empty must be marked as empty")
		require.Equal(t, c.At, *a.CheckedAt)
		require.Equal(t, c.At, *a.DiscoveredAt)

		db.Clock.Advance(24 * time.Hour)
		again := storetest.ClaimOne(t, db, link.TikTok, "account")
		require.Equal(t, queue.LanePremium, again.Targets[0].Lane)
		require.Zero(t, again.Targets[0].Depth, "the collector must not request a longer list again")
		require.Equal(t, "42", again.Targets[0].AccountID)
		silent := storetest.AccountOutcome(db, again.Targets[0], ingest.AccountFacts{})
		require.NoError(t, db.Acknowledge(t.Context(), again, again.At, []ingest.Outcome{silent}))
		after := storetest.AccountByLink(t, o, l)
		a.CheckedAt, a.FetchState = &again.At, after.FetchState
		require.Equal(t, a, after, "a value that the source does not report must stay unchanged")
	})
}

func TestTrackAccounts_doesNotChangeAnAccountThatIsTrackedAlready(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
		first := storetest.Follow(t, o, store.TrackNewOnly, l)[0]
		db.Clock.Advance(time.Second) // so the first fetch is already due at both calls of AccountByLink
		before := storetest.AccountByLink(t, o, l)
		db.Clock.Advance(time.Hour - time.Second)
		again := storetest.Follow(t, o, store.TrackAll, l)
		require.Equal(t, []store.Tracked{{ID: first.ID, Existing: true, Already: true, KeptType: store.TrackNewOnly}}, again)
		require.Equal(t, before, storetest.AccountByLink(t, o, l), "the account must keep its tracking type")

		linked := storetest.Track(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@other/video/7301234567890123456"))
		require.Len(t, linked, 1)
		other := storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, "https://www.tiktok.com/@other"))
		require.False(t, other[0].Existing, "the field Existing must be false for an account that was stored only because a video is linked to it")
	})
}

func TestTrackAccounts_tracksEachAccountOnceIfEqualRequestsRunConcurrently(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const requests = 16
		o := storetest.NewOrg(t, db)
		links := []link.Link{storetest.ParseLink(t, storetest.AccountURL), storetest.ParseLink(t, "https://www.instagram.com/someone/"), storetest.ParseLink(t, "https://www.youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q")}
		var wg sync.WaitGroup
		tracked, errs := make([][]store.Tracked, requests), make([]error, requests)
		for i := range requests {
			wg.Go(func() {
				tracked[i], errs[i] = o.TrackAccounts(t.Context(), store.TrackRequest{Links: links, Type: store.TrackAll, CollectionNames: []string{"Dogs"}})
			})
		}
		wg.Wait()
		fresh := 0
		for i := range requests {
			require.NoError(t, errs[i])
			for j := range links {
				require.Equal(t, tracked[0][j].ID, tracked[i][j].ID)
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

func TestTrackAccounts_tracksNothingIfACollectionIsUnknown(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		mine, foreign := storetest.Collection(t, o, "Mine", nil), storetest.Collection(t, storetest.NewOrg(t, db), "Foreign", nil)
		r := store.TrackRequest{Links: []link.Link{storetest.ParseLink(t, storetest.AccountURL)}, Type: store.TrackAll, CollectionIDs: []uuid.UUID{mine.ID, foreign.ID}, Immediate: 1}
		_, err := o.TrackAccounts(t.Context(), r)
		var missing *store.NotFoundError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, []string{foreign.ID.String()}, missing.Names)
		require.Empty(t, storetest.Claim(t, db, link.TikTok, "account"))
		_, err = o.Account(t.Context(), store.Ref{Link: r.Links[0]})
		require.ErrorIs(t, err, store.ErrNotFound)

		r.CollectionIDs, r.CollectionNames = r.CollectionIDs[:1], []string{"Named"}
		_, err = o.TrackAccounts(t.Context(), r)
		require.NoError(t, err)
		labels := storetest.AccountByLink(t, o, r.Links[0]).Labels
		require.Len(t, labels, 2)
		require.Equal(t, store.Label{ID: mine.ID, Name: "Mine"}, *labels[0])
		require.Equal(t, "Named", labels[1].Name)
	})
}

func TestDiscovery_tracksTheVideosThatTheTrackingTypeIncludes(t *testing.T) {
	t.Parallel()
	for kind, want := range map[store.TrackingType]int{store.TrackLatest30: 30, store.TrackLatest200: 200, store.TrackNewOnly: 0, store.TrackAll: 210} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				o := storetest.NewOrg(t, db)
				storetest.Follow(t, o, kind, storetest.ParseLink(t, storetest.AccountURL))
				older := storetest.FoundVideos(t, 210, db.Clock.Now().Add(-time.Hour))
				storetest.DeliverAccount(t, db, storetest.ListedAccount(older))
				require.EqualValues(t, want, storetest.ListVideos(t, o, store.VideoQuery{}).Total)

				db.Clock.Advance(24 * time.Hour)
				fresh := ingest.FoundVideo{ID: storetest.VideoLink(t, 999).ID, Link: storetest.VideoLink(t, 999).Canonical, UploadedAt: new(store.InstantOf(db.Clock.Now().Add(-time.Hour)))}
				storetest.DeliverAccount(t, db, storetest.ListedAccount(append([]ingest.FoundVideo{fresh}, older...)))
				require.EqualValues(t, want+1, storetest.ListVideos(t, o, store.VideoQuery{}).Total, "one video must be added: the video that was uploaded after tracking began")
				require.NotEmpty(t, storetest.Claim(t, db, link.TikTok, "video"), "the new video must be due immediately")

				v := storetest.VideoOf(t, o, storetest.VideoLink(t, 999))
				require.False(t, v.Direct)
				require.Equal(t, storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).ID, *v.LinkedAccountID)
			})
		})
	}
}

func TestDiscovery_doesNotTrackAStoppedVideoAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		videos := storetest.FoundVideos(t, 3, db.Clock.Now())
		storetest.DeliverAccount(t, db, storetest.ListedAccount(videos))
		storetest.StopVideos(t, o, storetest.VideoLink(t, 1))
		db.Clock.Advance(24 * time.Hour)
		storetest.DeliverAccount(t, db, storetest.ListedAccount(videos))
		require.True(t, storetest.VideoOf(t, o, storetest.VideoLink(t, 1)).Removed)
		require.EqualValues(t, 2, storetest.ListVideos(t, o, store.VideoQuery{}).Total)
		storetest.RequireConsistent(t, db, o)
	})
}

func TestStopAccounts_stopsVideosThatAreTrackedOnlyThroughTheAccount(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
		own, adopted := storetest.VideoLink(t, 0), storetest.VideoLink(t, 1)
		storetest.Track(t, o, own)
		storetest.Follow(t, o, store.TrackLatest30, l)
		storetest.DeliverAccount(t, db, storetest.ListedAccount(storetest.FoundVideos(t, 4, db.Clock.Now())))
		require.Equal(t, []store.Tracked{{ID: storetest.VideoOf(t, o, adopted).ID, Existing: true, Already: true}}, storetest.Track(t, o, adopted), "the discovered video must now also be tracked directly")
		require.EqualValues(t, 4, storetest.ListVideos(t, o, store.VideoQuery{}).Total)

		ids := []uuid.UUID{storetest.AccountByLink(t, o, l).ID, store.NewID(), uuid.Nil}
		untracked, err := o.StopAccounts(t.Context(), ids)
		require.NoError(t, err)
		require.Equal(t, ids[1:], untracked)
		a := storetest.AccountByLink(t, o, l)
		require.True(t, a.Removed)
		require.False(t, a.Tracked)
		require.EqualValues(t, 2, a.TotalVideosTracked)
		for i := range 4 {
			require.Equal(t, i > 1, storetest.VideoOf(t, o, storetest.VideoLink(t, i)).Removed, "video %d", i)
		}
		storetest.RequireConsistent(t, db, o)
		untracked, err = o.StopAccounts(t.Context(), ids[:1])
		require.NoError(t, err)
		require.Equal(t, ids[:1], untracked, "the id of an account that is already stopped must be returned")

		db.Clock.Advance(time.Hour)
		require.Equal(t, []store.Tracked{{ID: a.ID, Existing: true, Deferred: true}}, storetest.Follow(t, o, store.TrackNewOnly, l))
		require.Equal(t, store.TrackNewOnly, *storetest.AccountByLink(t, o, l).TrackingType)
		s, err := o.AccountStatistics(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Total)
		require.Zero(t, s.Removed)
	})
}

func TestStopAccounts_discardsTheAnswerOfAFetchThatIsRunning(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
		storetest.Follow(t, o, store.TrackLatest30, l)
		c := storetest.ClaimOne(t, db, link.TikTok, "account")
		storetest.StopAccounts(t, o, l)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], storetest.ListedAccount(storetest.FoundVideos(t, 3, db.Clock.Now())))}))
		require.Zero(t, storetest.ListVideos(t, o, store.VideoQuery{IncludeRemoved: true}).Total)
		require.Nil(t, storetest.AccountByLink(t, o, l).CheckedAt)
	})
}

func TestAcknowledge_mergesTwoRecordsWithTheSameAccountID(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		c := storetest.Collection(t, o, "Dogs", nil)
		withoutHandle := storetest.ParseLink(t, storetest.YouTubeURL) // the link has no handle, and the source reports only the author's id
		storetest.Track(t, o, withoutHandle)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{withoutHandle: storetest.FactsWithAuthor("UCLqxVugv74EIW3VWh2NOa3Q", "")})
		linked := storetest.AccountOf(t, o, withoutHandle)
		_, err := o.AddAccounts(t.Context(), c.ID, []uuid.UUID{linked.ID})
		require.NoError(t, err)

		l := storetest.ParseLink(t, "https://www.youtube.com/@someone")
		asked := storetest.Follow(t, o, store.TrackNewOnly, l)[0]
		require.NotEqual(t, linked.ID, asked.ID, "the records must stay separate until a source reports that they are one account")
		claimed := storetest.ClaimOne(t, db, link.YouTube, "account")
		facts := ingest.AccountFacts{ID: new("UCLqxVugv74EIW3VWh2NOa3Q"), Username: new("someone"), Followers: new(int64(1))}
		require.NoError(t, db.Acknowledge(t.Context(), claimed, claimed.At, []ingest.Outcome{storetest.AccountOutcome(db, claimed.Targets[0], facts)}))

		a := storetest.AccountByLink(t, o, l)
		require.Equal(t, asked.ID, a.ID)
		require.Equal(t, []*store.Label{{ID: c.ID, Name: "Dogs"}}, a.Labels)
		require.EqualValues(t, 1, a.TotalVideosTracked)
		require.Equal(t, a.ID, *storetest.VideoOf(t, o, withoutHandle).LinkedAccountID)
		_, err = o.Account(t.Context(), store.Ref{ID: linked.ID})
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestAcknowledge_mergesAnAccountThatIsTrackedByHandleAndByID(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		byHandle, byID := storetest.ParseLink(t, "https://www.youtube.com/@someone"), storetest.ParseLink(t, "https://www.youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q")
		storetest.Follow(t, o, store.TrackNewOnly, byHandle, byID)
		for range 2 { // the first fetch of the two targets shows that they are one account
			for _, c := range storetest.Claim(t, db, link.YouTube, "account") {
				var outcomes []ingest.Outcome
				for _, target := range c.Targets {
					outcomes = append(outcomes, storetest.AccountOutcome(db, target, ingest.AccountFacts{ID: new("UCLqxVugv74EIW3VWh2NOa3Q"), Username: new("someone"), Followers: new(int64(10))}))
				}
				require.NoError(t, db.Acknowledge(t.Context(), c, c.At, outcomes))
			}
			db.Clock.Advance(24 * time.Hour)
		}
		require.Equal(t, storetest.AccountByLink(t, o, byID).ID, storetest.AccountByLink(t, o, byHandle).ID)
		s, err := o.AccountStatistics(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Total, "the account must be counted once")
	})
}

func TestDiscovery_savesManyVideosWithFewStatements(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Follow(t, o, store.TrackLatest200, storetest.ParseLink(t, storetest.AccountURL))
		c := storetest.ClaimOne(t, db, link.TikTok, "account")
		videos := storetest.FoundVideos(t, 200, db.Clock.Now())
		db.Guard.Statements()
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], storetest.ListedAccount(videos))}))
		require.Less(t, len(db.Guard.Statements()), 33)
		require.EqualValues(t, 200, storetest.ListVideos(t, o, store.VideoQuery{}).Total)
	})
}

func TestRefresh_isAllowedEveryFourHours(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l, a := storetest.NewOrg(t, db), storetest.VideoLink(t, 1), storetest.ParseLink(t, storetest.AccountURL)
		storetest.Track(t, o, l)
		storetest.Follow(t, o, store.TrackNewOnly, a)
		refresh := map[queue.Kind]func() (store.Refreshed, error){
			"video":   func() (store.Refreshed, error) { return o.RefreshVideo(t.Context(), store.Ref{Link: l}, nil) },
			"account": func() (store.Refreshed, error) { return o.RefreshAccount(t.Context(), store.Ref{Link: a}, nil) },
		}
		for kind, ask := range refresh {
			r, err := ask()
			require.NoError(t, err)
			require.Equal(t, store.Refreshed{Scheduled: true}, r, "%s: a refresh before the first fetch must be allowed", kind)
		}
		storetest.Deliver(t, db, link.TikTok, storetest.Views(1))
		storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("42"), Username: new("someone")})
		at := store.InstantOf(db.Clock.Now())
		db.Clock.Advance(queue.RefreshPause - time.Microsecond)
		for kind, ask := range refresh {
			r, err := ask()
			require.NoError(t, err)
			require.Equal(t, store.Refreshed{UpdatedAt: &at, After: at.Add(queue.RefreshPause)}, r, kind)
			require.Empty(t, storetest.Claim(t, db, link.TikTok, kind))
		}
		db.Clock.Advance(time.Microsecond)
		for kind, ask := range refresh {
			r, err := ask()
			require.NoError(t, err)
			require.Equal(t, store.Refreshed{Scheduled: true, UpdatedAt: &at}, r, kind)
			require.Equal(t, queue.LaneInteractive, storetest.ClaimOne(t, db, link.TikTok, kind).Targets[0].Lane)
		}
		require.Len(t, storetest.Column[string](t, db, "SELECT external_id FROM fetch_targets"), 2, "the external id of the account's target must still be the handle")
	})
}

func TestRefresh_returnsNotFoundIfTheRecordIsNotTracked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		storetest.StopVideos(t, o, l)
		for _, ref := range []store.Ref{{Link: l}, {ID: store.NewID()}, {Link: storetest.VideoLink(t, 2)}} {
			_, err := o.RefreshVideo(t.Context(), ref, nil)
			require.ErrorIs(t, err, store.ErrNotFound)
			require.ErrorContains(t, err, ref.String())
		}
		for _, ref := range []store.Ref{{Link: storetest.ParseLink(t, storetest.AccountURL)}, {ID: store.NewID()}, {Link: storetest.ParseLink(t, "https://www.tiktok.com/@nobody")}} {
			_, err := o.RefreshAccount(t.Context(), ref, nil) // the account @someone is not tracked: it is stored only because a video is linked to it
			require.ErrorIs(t, err, store.ErrNotFound)
			require.ErrorContains(t, err, ref.String())
		}
	})
}

func TestAcknowledge_ignoresAnOrganisationThatStartsTrackingDuringTheWrite(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres") // this test does not run on SQLite, where two transactions cannot write at the same time
	l := storetest.ParseLink(t, "https://www.tiktok.com/@someone")
	first, late := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
	storetest.Follow(t, first, store.TrackNewOnly, l)
	c := storetest.ClaimOne(t, db, link.TikTok, queue.KindAccount)
	var before store.Version
	db.Guard.BeforeStatement("UPDATE organisation_totals SET version", func() { // this function runs after Acknowledge has read the subscriptions
		storetest.Follow(t, late, store.TrackNewOnly, l)
		var err error
		before, err = late.Version(t.Context())
		require.NoError(t, err)
	})
	facts := ingest.AccountFacts{Followers: new(int64(7))}
	require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], facts)}))
	require.EqualValues(t, 7, *storetest.AccountByLink(t, first, l).LatestFollowersCount)
	require.Nil(t, storetest.AccountByLink(t, late, l).LatestFollowersCount)
	after, err := late.Version(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, after)

	storetest.DeliverAccount(t, db, facts) // the account is due again, so this call fetches it a second time
	require.EqualValues(t, 7, *storetest.AccountByLink(t, late, l).LatestFollowersCount)
}

func TestTrackAccounts_keepsAHandleThatASourceReported(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, byID := storetest.NewOrg(t, db), storetest.ParseLink(t, "https://www.facebook.com/profile.php?id=100063551323670")
		title := storetest.ParseLink(t, "https://www.facebook.com/My-Page-100063551323670")
		require.Equal(t, []string{"100063551323670", "my-page-100063551323670"}, []string{title.ID, title.Handle})
		storetest.Follow(t, o, store.TrackNewOnly, byID)
		c := storetest.ClaimOne(t, db, link.Facebook, "account")
		facts := ingest.AccountFacts{ID: new("100063551323670"), Username: new("mypage"), Listed: true}
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], facts)}))
		before := storetest.AccountByLink(t, o, byID)
		require.Equal(t, "mypage", before.Username)

		storetest.Follow(t, o, store.TrackNewOnly, title)
		after := storetest.AccountByLink(t, o, byID)
		require.Equal(t, []string{before.ID.String(), "mypage", before.Link}, []string{after.ID.String(), after.Username, after.Link})
	})
}
