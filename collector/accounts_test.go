package collector_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// accountLink returns the parsed URL of an account's profile.
func (w *testSystem) accountLink(p link.Platform, handle string) link.Link {
	w.t.Helper()
	l, err := link.Parse(link.AccountURL(p, handle))
	require.NoError(w.t, err)
	require.Equal(w.t, link.Account, l.Kind)
	return l
}

func (w *testSystem) trackAccount(l link.Link, kind store.TrackingType) store.Ref {
	w.t.Helper()
	out, err := w.org.TrackAccounts(w.t.Context(), store.TrackRequest{Links: []link.Link{l}, Type: kind, Immediate: 1})
	require.NoError(w.t, err)
	return store.Ref{ID: out[0].ID}
}

func (w *testSystem) storedAccount(ref store.Ref) store.Account {
	w.t.Helper()
	a, err := w.org.Account(w.t.Context(), ref)
	require.NoError(w.t, err)
	return a
}

// accountVideos returns the tracked videos of an account. The key is the id of the video on the platform.
func (w *testSystem) accountVideos(ref store.Ref) map[string]store.Video {
	w.t.Helper()
	page, err := w.org.ListAccountVideos(w.t.Context(), ref, store.VideoQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 5000}})
	require.NoError(w.t, err)
	out := map[string]store.Video{}
	for _, v := range page.Rows {
		out[v.ExternalID] = v
	}
	return out
}

// waitForTrackedVideos waits until the account has enough tracked videos. It then checks that they are exactly the videos with the given
// ids.
func (w *testSystem) waitForTrackedVideos(ref store.Ref, ids []string) {
	w.t.Helper()
	w.waitUntil("the account's videos must be tracked", func() bool { return w.storedAccount(ref).TotalVideosTracked >= int64(len(ids)) })
	require.ElementsMatch(w.t, ids, slices.Collect(maps.Keys(w.accountVideos(ref))))
}

// waitForFetchedVideos calls waitForTrackedVideos, waits until all videos have counts, and checks the counts.
func (w *testSystem) waitForFetchedVideos(ref store.Ref, ids []string) {
	w.t.Helper()
	w.waitForTrackedVideos(ref, ids)
	w.waitUntil("the account's videos must have counts", func() bool {
		return storetest.Column[int64](w.t, w.db, "SELECT COUNT(*) FROM videos WHERE latest_views IS NULL AND NOT removed")[0] == 0
	})
	a := w.storedAccount(ref)
	for id, v := range w.accountVideos(ref) {
		correct, ok := w.sandbox.World().Video(a.Platform, id, v.LatestUpdatedAt.Time())
		require.True(w.t, ok)
		require.Equal(w.t, correct.Views, *v.Latest.Views, id)
		require.Equal(w.t, ref.ID, *v.LinkedAccountID)
		require.Equal(w.t, a.Username, v.Username)
		require.Equal(w.t, store.DateOf(correct.UploadedAt), *v.UploadedAt)
	}
}

// waitForAccountFetch waits until the account was fetched successfully at the given time or later. If the time is 0, any successful fetch
// is enough.
func (w *testSystem) waitForAccountFetch(ref store.Ref, earliest store.Instant) {
	w.t.Helper()
	w.waitUntil("the account must be fetched", func() bool {
		at := w.storedAccount(ref).CheckedAt
		return at != nil && *at >= earliest
	})
}

// accountWithUploads returns the handle of an account with at least the given number of videos. This
// account uploads another video before the time untilAllAccountsAreDue has passed.
func (w *testSystem) accountWithUploads(p link.Platform, videos int) string {
	w.t.Helper()
	platforms := w.sandbox.World()
	for number := uint32(1); number < 20_000; number++ {
		handle := platforms.Handle(p, number)
		a, ok := platforms.Account(p, handle, w.db.Clock.Now())
		if !ok || a.Category != sandbox.AccountNormal || a.Videos < int64(videos) {
			continue
		}
		now, later := platforms.Uploads(p, handle, w.db.Clock.Now()), platforms.Uploads(p, handle, w.db.Clock.Now().Add(untilAllAccountsAreDue))
		// Vendors refuse age-restricted videos, so the account must not have one.
		hasAgeRestricted := slices.ContainsFunc(later, func(id string) bool {
			v, _ := platforms.Video(p, id, w.db.Clock.Now())
			return v.NotSafe
		})
		if !hasAgeRestricted && later[0] != now[0] {
			return handle
		}
	}
	w.t.Fatalf("an account of %s must have %d videos", p, videos)
	return ""
}

// untilAllAccountsAreDue is long enough to make every account due again. The clock starts at noon,
// and the next fetches are on the next day.
const untilAllAccountsAreDue = 37 * time.Hour

func TestTrackedAccount_trackingTypeDecidesWhichVideosAreTracked(t *testing.T) {
	t.Parallel()
	newest := map[store.TrackingType]int{store.TrackLatest30: 30, store.TrackLatest200: 200, store.TrackNewOnly: 0, store.TrackAll: 5000}
	for _, p := range link.Platforms {
		for kind, depth := range newest {
			t.Run(string(p)+" "+string(kind), func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, db *storetest.DB) {
					w := newTestSystem(t, db)
					platforms := w.sandbox.World()
					handle := w.accountWithUploads(p, 33)
					ref := w.trackAccount(w.accountLink(p, handle), kind)
					w.startCollector("sandbox")
					w.waitForAccountFetch(ref, 0)
					w.requireStoredProfile(ref, handle)

					uploads := platforms.Uploads(p, handle, db.Clock.Now())
					want := uploads[:min(depth, len(uploads))]
					w.waitForFetchedVideos(ref, want)

					var stopped string
					if len(want) > 0 { // the organisation stops tracking one video, which must stay untracked although its account is tracked
						stopped = want[0]
						v := w.accountVideos(ref)[stopped]
						_, err := w.org.StopVideos(t.Context(), []uuid.UUID{v.ID})
						require.NoError(t, err)
						want = want[1:]
					}
					db.Clock.Advance(untilAllAccountsAreDue)
					w.waitForAccountFetch(ref, store.InstantOf(db.Clock.Now()))
					later := platforms.Uploads(p, handle, db.Clock.Now())
					for _, id := range later {
						if !slices.Contains(uploads, id) {
							want = append(slices.Clone(want), id)
						}
					}
					w.waitForFetchedVideos(ref, want)
					require.NotContains(t, w.accountVideos(ref), stopped)
				})
			})
		}
	}
}

// requireStoredProfile checks that the stored profile of an account equals its profile in the sandbox.
func (w *testSystem) requireStoredProfile(ref store.Ref, handle string) {
	w.t.Helper()
	a := w.storedAccount(ref)
	correct, ok := w.sandbox.World().Account(a.Platform, handle, a.CheckedAt.Time())
	require.True(w.t, ok)
	require.Equal(w.t, correct.ID, *a.ExternalID)
	require.Equal(w.t, correct.Handle, a.Username)
	require.Equal(w.t, correct.Name, *a.Name)
	require.Equal(w.t, correct.Bio, *a.Bio)
	require.Equal(w.t, correct.Followers, a.LatestFollowersCount)
	if a.Platform == link.YouTube {
		require.Nil(w.t, a.LatestFollowingCount, "the number of followed accounts must be missing, because YouTube does not return it")
	} else {
		require.Equal(w.t, correct.Following, *a.LatestFollowingCount)
		if correct.BioLink == "" {
			require.Nil(w.t, a.ProfileLink)
		} else {
			require.Equal(w.t, correct.BioLink, *a.ProfileLink)
		}
	}
	require.False(w.t, a.Removed)
	require.Equal(w.t, correct.State == sandbox.Private, a.Private)
	require.Equal(w.t, correct.Category == sandbox.AccountEmpty, a.Empty)
}

func TestTrackedAccount_allPagesOfItsVideoListAreFetched(t *testing.T) {
	t.Parallel()
	for _, p := range link.Platforms {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				w := newTestSystem(t, db)
				db.Clock.Advance(400 * 24 * time.Hour) // 400 days later, the accounts in the sandbox have hundreds of videos
				handle := w.accountWithUploads(p, 215)
				uploads := w.sandbox.World().Uploads(p, handle, db.Clock.Now())
				ref := w.trackAccount(w.accountLink(p, handle), store.TrackLatest200)

				// A second organisation starts to track all videos of the account. The collector
				// may already be fetching the video list for the first organisation.
				other, err := db.CreateOrganisation(t.Context(), "Other", store.TierPremium, store.SubscriptionActive)
				require.NoError(t, err)
				second := &testSystem{t: t, db: db, sandbox: w.sandbox, url: w.url, org: db.Org(other.ID), log: w.log}
				w.startCollector("sandbox")
				all := second.trackAccount(w.accountLink(p, handle), store.TrackAll)
				w.waitForTrackedVideos(ref, uploads[:200])
				second.waitForTrackedVideos(all, uploads)
			})
		})
	}
}

func TestTrackedAccount_profileIsStoredForEveryCategoryOfAccount(t *testing.T) {
	t.Parallel()
	for _, p := range link.Platforms {
		for _, category := range sandbox.AccountCategories(p) {
			if category == sandbox.AccountNormal || category == sandbox.AccountGone {
				continue
			}
			t.Run(string(p)+" "+string(category), func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, db *storetest.DB) {
					w := newTestSystem(t, db)
					handle := w.sandbox.World().FindAccount(p, category)
					ref := w.trackAccount(w.accountLink(p, handle), store.TrackLatest30)
					w.startCollector("sandbox")
					w.waitForAccountFetch(ref, 0)
					if category == sandbox.AccountNoHandle {
						a := w.storedAccount(ref)
						require.Equal(t, *a.ExternalID, a.Username, "the username of an old YouTube channel must be its id")
						return
					}
					w.requireStoredProfile(ref, handle)
					if category != sandbox.FollowersHidden {
						require.Empty(t, w.accountVideos(ref))
					}
				})
			})
		}
	}
}

func TestTrackedAccount_isMarkedGoneAfterSeveralNotFoundAnswers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		refs := map[link.Platform]store.Ref{}
		for _, p := range link.Platforms {
			refs[p] = w.trackAccount(w.accountLink(p, w.sandbox.World().FindAccount(p, sandbox.AccountGone)), store.TrackLatest30)
		}
		w.startCollector("sandbox")
		for _, p := range link.Platforms {
			w.waitForLog("no numbers stored for the target", "kind=account", "platform="+string(p), "class=gone")
		}
		w.requireTargetStates("active")
		for range 3 { // the answers that confirm a deletion must be hours apart
			db.Clock.Advance(untilAllAccountsAreDue)
			w.waitForIdleQueue()
		}
		w.requireTargetStates("gone")
		for _, ref := range refs {
			a := w.storedAccount(ref)
			require.Nil(t, a.CheckedAt)
			require.Nil(t, a.LatestFollowersCount)
			require.False(t, a.Empty)
		}
	})
}

// waitForIdleQueue waits until no target is due or claimed.
func (w *testSystem) waitForIdleQueue() {
	w.t.Helper()
	w.waitUntil("no target may be due or claimed", func() bool {
		return storetest.Column[int64](w.t, w.db, fmt.Sprintf("SELECT COUNT(*) FROM fetch_targets WHERE claimed_by IS NOT NULL OR next_at <= %d",
			store.InstantOf(w.db.Clock.Now())))[0] == 0
	})
}

// requireTargetStates checks that all targets have the wanted state.
func (w *testSystem) requireTargetStates(want string) {
	w.t.Helper()
	for _, state := range storetest.Column[string](w.t, w.db, "SELECT state FROM fetch_targets") {
		require.Equal(w.t, want, state)
	}
}

func TestCollector_makesNoCallForATargetThatNoSourceCanFetch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		l, err := link.Parse("https://www.tiktok.com/share/user/6801234567890123456") // the vendor needs the handle of the account, but this link contains only the account's id
		require.NoError(t, err)
		w.trackAccount(l, store.TrackLatest30)
		w.startCollector("sandbox")
		w.waitUntil("the target must be parked", func() bool {
			return storetest.Column[string](t, db, "SELECT state FROM fetch_targets")[0] == "parked"
		})
		w.waitForIdleQueue()
		require.Equal(t, []string{"no configured source serves this target"}, storetest.Column[string](t, db, "SELECT detail FROM fetch_targets"))
		require.Zero(t, w.callCount("vendor"))
	})
}
