package collector_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

const newHandle = "quite.another"

// renameAccount changes the handle of an account on its platform to newHandle. If otherAccount is true, another account then gets the old handle.
func (w *testSystem) renameAccount(p link.Platform, handle string, otherAccount bool) {
	w.t.Helper()
	w.callControlInterface(http.MethodPut, "/_control/account", map[string]any{"platform": p, "handle": handle, "new_handle": newHandle, "reuse": otherAccount})
}

// newOrganisation returns a copy of the test's system with a new organisation. The copy has the same database and sandbox.
func (w *testSystem) newOrganisation() *testSystem {
	w.t.Helper()
	o, err := w.db.CreateOrganisation(w.t.Context(), "Another", store.TierPremium, store.SubscriptionActive)
	require.NoError(w.t, err)
	return &testSystem{t: w.t, db: w.db, sandbox: w.sandbox, url: w.url, org: w.db.Org(o.ID), log: w.log}
}

// requireHandle checks the handle, the followers and the videos of a stored account. A link with the
// handle must lead to this account.
func (w *testSystem) requireHandle(ref store.Ref, handle string) {
	w.t.Helper()
	a := w.storedAccount(ref)
	require.Equal(w.t, handle, a.Username)
	require.True(w.t, a.HandleCurrent)
	require.Equal(w.t, link.AccountURL(a.Platform, handle), a.Link)
	correct, ok := w.sandbox.World().Account(a.Platform, handle, a.CheckedAt.Time())
	require.True(w.t, ok)
	require.Equal(w.t, correct.Followers, a.LatestFollowersCount)
	if a.ExternalID != nil {
		require.Equal(w.t, correct.ID, *a.ExternalID)
	}
	videos := w.accountVideos(ref)
	require.NotEmpty(w.t, videos)
	for id, v := range videos {
		author, ok := w.sandbox.World().Video(a.Platform, id, w.db.Clock.Now())
		require.True(w.t, ok)
		require.Equal(w.t, correct.ID, author.Account.ID, "the video must belong to the account")
		require.Equal(w.t, handle, v.Username)
	}
	byHandle, err := w.org.Account(w.t.Context(), store.Ref{Link: w.accountLink(a.Platform, handle)})
	require.NoError(w.t, err)
	require.Equal(w.t, ref.ID, byHandle.ID)
}

func (w *testSystem) accountCount() int64 {
	w.t.Helper()
	page, err := w.org.ListAccounts(w.t.Context(), store.AccountQuery{IncludeLinked: true, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 10}})
	require.NoError(w.t, err)
	return page.Total
}

// If the source can fetch an account by its id, the next fetch stores the new handle, even if the old handle now belongs to another
// account.
func TestRenamedAccount_isRecognisedByItsID(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		platform link.Platform
		vendor   string
	}{
		"youtube": {link.YouTube, "sandbox"}, "facebook, vendor sandbox": {link.Facebook, "sandbox"}, "facebook, vendor scrapecreators": {link.Facebook, "scrapecreators"},
		"facebook": {link.Facebook, "meta"},
	} {
		for _, otherAccount := range []bool{false, true} {
			t.Run(map[bool]string{true: "old handle reused", false: "old handle unused"}[otherAccount]+", "+name, func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, db *storetest.DB) {
					w := newTestSystem(t, db)
					second := w.newOrganisation()
					handle := w.accountWithUploads(tt.platform, 5)
					ref, other := w.trackAccount(w.accountLink(tt.platform, handle), store.TrackLatest30), second.trackAccount(w.accountLink(tt.platform, handle), store.TrackLatest30)
					w.startCollector(tt.vendor)
					w.waitForAccountFetch(ref, 0)
					second.waitForAccountFetch(other, 0)
					w.waitForIdleQueue()
					w.requireHandle(ref, handle)

					w.renameAccount(tt.platform, handle, otherAccount)
					db.Clock.Advance(untilAllAccountsAreDue)
					for _, o := range []struct {
						*testSystem
						ref store.Ref
					}{{w, ref}, {second, other}} {
						o.waitForAccountFetch(o.ref, store.InstantOf(db.Clock.Now()))
						o.requireHandle(o.ref, newHandle)
						require.EqualValues(t, 1, o.accountCount())
					}
					require.Len(t, storetest.Column[string](t, db, "SELECT external_id FROM fetch_targets WHERE kind = 'account'"), 1, "both organisations must share one target")
					if otherAccount {
						w.requireOtherAccount(handle, ref)
					}
				})
			})
		}
	}
}

// deferDetails delays the next fetch of details by the given duration, for all videos. The details contain the handle of the author.
func (w *testSystem) deferDetails(duration time.Duration) {
	w.t.Helper()
	w.db.Exec(w.t, "UPDATE fetch_targets SET details_at = ? WHERE kind = 'video'", store.InstantOf(w.db.Clock.Now().Add(duration)))
}

// requireOtherAccount tracks the account that now has the old handle of a renamed account, and waits until it
// is fetched. The stored followers of the renamed account (ref) must not change.
func (w *testSystem) requireOtherAccount(handle string, ref store.Ref) {
	w.t.Helper()
	a := w.storedAccount(ref)
	otherAccount := w.trackAccount(w.accountLink(a.Platform, handle), store.TrackLatest30)
	require.NotEqual(w.t, ref.ID, otherAccount.ID)
	w.waitForAccountFetch(otherAccount, 0)
	w.requireHandle(otherAccount, handle)
	require.Equal(w.t, a.LatestFollowersCount, w.storedAccount(ref).LatestFollowersCount)
}

// The sources can fetch accounts only by handle. If another account has the old handle, that
// account's counts must not be stored for the renamed account.
func TestRenamedAccount_newHandleIsTakenFromTheDetailsOfItsVideos(t *testing.T) {
	t.Parallel()
	for _, p := range []link.Platform{link.TikTok, link.Instagram} {
		for _, otherAccount := range []bool{false, true} {
			t.Run(map[bool]string{true: "old handle reused", false: "old handle unused"}[otherAccount]+", "+string(p), func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, db *storetest.DB) {
					w := newTestSystem(t, db)
					handle := w.accountWithUploads(p, 5)
					ref := w.trackAccount(w.accountLink(p, handle), store.TrackLatest30)
					w.startCollector("sandbox")
					w.waitForAccountFetch(ref, 0)
					w.waitForFetchedVideos(ref, w.sandbox.World().Uploads(p, handle, db.Clock.Now())[:min(30, len(w.sandbox.World().Uploads(p, handle, db.Clock.Now())))])
					before := w.storedAccount(ref)

					w.renameAccount(p, handle, otherAccount)
					w.deferDetails(untilAllAccountsAreDue)
					db.Clock.Advance(untilAllAccountsAreDue)
					if otherAccount {
						w.waitForLog("no numbers stored for the target", "kind=account", "platform="+string(p), "class=handle_reused", "another account now has the handle "+handle)
					} else {
						w.waitForLog("no numbers stored for the target", "kind=account", "platform="+string(p), "class=gone")
					}
					w.waitForIdleQueue()
					a := w.storedAccount(ref)
					require.Equal(t, before.CheckedAt, a.CheckedAt)
					require.Equal(t, before.LatestFollowersCount, a.LatestFollowersCount)
					require.Equal(t, before.Name, a.Name)
					w.waitUntil("the handle must be marked as reused if another account has it", func() bool { return w.storedAccount(ref).HandleCurrent != otherAccount })
					if otherAccount {
						w.requireOtherAccount(handle, ref)
					}

					db.Clock.Advance(8 * 24 * time.Hour) // after eight days, the details of the videos are due again
					w.waitForAccountFetch(ref, store.InstantOf(db.Clock.Now()))
					w.waitUntil("all videos must have the new handle", func() bool {
						for _, v := range w.accountVideos(ref) {
							if v.Username != newHandle {
								return false
							}
						}
						return true
					})
					w.requireHandle(ref, newHandle)
					require.Equal(t, map[bool]int64{true: 2, false: 1}[otherAccount], w.accountCount())
				})
			})
		}
	}
}

// The Graph API finds Instagram accounts only by handle. Its account ids differ from the ids that vendors return.
func TestRenamedAccount_countsOfAnotherInstagramAccountAreNotStored(t *testing.T) {
	t.Parallel()
	for _, otherAccount := range []bool{false, true} {
		t.Run(map[bool]string{true: "old handle reused", false: "old handle unused"}[otherAccount], func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				w := newTestSystem(t, db)
				handle := w.accountWithUploads(link.Instagram, 5)
				ref := w.trackAccount(w.accountLink(link.Instagram, handle), store.TrackLatest30)
				w.startCollector("meta")
				w.waitForAccountFetch(ref, 0)
				w.waitUntil("the videos must have counts", func() bool {
					return storetest.Column[int64](t, db, "SELECT COUNT(*) FROM videos WHERE latest_views IS NULL")[0] == 0
				})
				before := w.storedAccount(ref)
				require.Nil(t, before.ExternalID)
				require.NotNil(t, before.SourceID)
				require.EqualValues(t, 1, w.accountCount(), "the account's videos must not create a second account")

				w.renameAccount(link.Instagram, handle, otherAccount)
				db.Clock.Advance(untilAllAccountsAreDue)
				class := map[bool]string{true: "class=handle_reused", false: "class=missing"}[otherAccount]
				w.waitForLog("no numbers stored for the target", "kind=account", "platform=instagram", class)
				a := w.storedAccount(ref)
				require.Equal(t, before.CheckedAt, a.CheckedAt)
				require.Equal(t, before.LatestFollowersCount, a.LatestFollowersCount)
				if otherAccount {
					w.waitUntil("the handle must be marked as reused", func() bool { return !w.storedAccount(ref).HandleCurrent })
					w.requireOtherAccount(handle, ref)
				}
			})
		})
	}
}

// TikTok's Display API identifies the authorized account by an id that is valid only for the operator's app.
func TestRenamedAccount_authorizedTikTokAccountIsRecognisedByItsID(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		handle := w.sandbox.TikTokAccount()
		ref := w.trackAccount(w.accountLink(link.TikTok, handle), store.TrackLatest30)
		w.startCollectorWith(w.displayAPISource(), w.researchAPISource())
		w.waitForAccountFetch(ref, 0)
		w.requireHandle(ref, handle)

		w.renameAccount(link.TikTok, handle, true)
		db.Clock.Advance(untilAllAccountsAreDue)
		w.waitForAccountFetch(ref, store.InstantOf(db.Clock.Now()))
		w.requireHandle(ref, newHandle)
		require.EqualValues(t, 1, w.accountCount())
	})
}

// A vendor and the Graph API return different ids for the same Instagram account, so the vendor's answer may be
// about another account. It is stored only if the last fetch by handle was recent.
func TestRenamedAccount_isDetectedAlthoughSourcesReportDifferentIDsForIt(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{"the vendor is asked the next day": untilAllAccountsAreDue, "the vendor is asked after ten days": 10 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				w := newTestSystem(t, db)
				handle := w.accountWithUploads(link.Instagram, 5)
				ref := w.trackAccount(w.accountLink(link.Instagram, handle), store.TrackNewOnly)
				stop := w.startCollectorWith(w.metaSources()...)
				w.waitForAccountFetch(ref, 0)
				before := w.storedAccount(ref)
				stop()

				if late > untilAllAccountsAreDue {
					w.renameAccount(link.Instagram, handle, true)
				}
				db.Clock.Advance(late)
				stop = w.startCollectorWith(w.newSources("sandbox")...)
				if late > untilAllAccountsAreDue {
					w.waitForLog("no numbers stored for the target", "kind=account", "platform=instagram", "class=missing", "it is not known which account now has the handle "+handle)
					a := w.storedAccount(ref)
					require.Equal(t, before.CheckedAt, a.CheckedAt)
					require.Equal(t, before.LatestFollowersCount, a.LatestFollowersCount)
					require.Nil(t, a.ExternalID)
					return
				}
				w.waitForAccountFetch(ref, store.InstantOf(db.Clock.Now()))
				stop()
				a := w.storedAccount(ref)
				require.NotNil(t, a.ExternalID, "the account must have the vendor's id as well as the Graph API's id")
				require.Equal(t, before.SourceID, a.SourceID)

				w.renameAccount(link.Instagram, handle, true)
				db.Clock.Advance(10 * 24 * time.Hour)
				w.startCollectorWith(w.metaSources()...)
				w.waitForLog("no numbers stored for the target", "source=instagram", "kind=account", "class=handle_reused")
				require.Equal(t, a.LatestFollowersCount, w.storedAccount(ref).LatestFollowersCount)
			})
		})
	}
}
