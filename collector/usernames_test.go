package collector_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// userNames makes the sandbox answer requests for a YouTube user name with the channel whose handle channelOf has for this name. It
// returns a function that returns the names in the requests so far, each with the name of its parameter.
func (w *testSystem) userNames(channelOf map[string]string) (requested func() []string) {
	var mu sync.Mutex
	var names []string
	box := w.sandbox.Handler()
	w.setHandler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		for _, parameter := range []string{"forUsername", "forHandle"} {
			if name := q.Get(parameter); name != "" {
				mu.Lock()
				names = append(names, parameter+"="+name)
				mu.Unlock()
			}
		}
		if handle, ok := channelOf[q.Get("forUsername")]; ok {
			q.Del("forUsername")
			q.Set("forHandle", "@"+handle)
			r.URL.RawQuery = q.Encode()
		}
		box.ServeHTTP(rw, r)
	}))
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), names...)
	}
}

// twoChannels returns the handles of two channels with videos.
func (w *testSystem) twoChannels() (first, second string) {
	w.t.Helper()
	first = w.accountWithUploads(link.YouTube, 5)
	for number := uint32(20_000); number < 40_000; number++ {
		handle := w.sandbox.World().Handle(link.YouTube, number)
		if a, ok := w.sandbox.World().Account(link.YouTube, handle, w.db.Clock.Now()); ok && a.Category == sandbox.AccountNormal && a.Videos >= 5 {
			return first, handle
		}
	}
	w.t.Fatal("there must be a second channel")
	return "", ""
}

func userLink(t *testing.T, name string) link.Link {
	t.Helper()
	return storetest.ParseLink(t, "https://www.youtube.com/user/"+name)
}

// requireTargetsByID checks that the fetch queue has the wanted number of accounts, and that each of them has a channel id instead of a name. It
// also checks that each account that the organisation tracks has one subscription in the queue.
func (w *testSystem) requireTargetsByID(wanted int) {
	w.t.Helper()
	targets := storetest.Column[string](w.t, w.db, "SELECT external_id FROM fetch_targets WHERE kind = 'account'")
	require.Len(w.t, targets, wanted)
	for _, id := range targets {
		require.Regexp(w.t, "^UC", id)
	}
	require.Empty(w.t, storetest.Column[string](w.t, w.db, "SELECT handle FROM fetch_targets WHERE kind = 'account' AND (handle LIKE '%~%' OR link LIKE '%/user/%')"))
	tracked, err := w.org.AccountStatistics(w.t.Context())
	require.NoError(w.t, err)
	require.Len(w.t, storetest.Column[string](w.t, w.db, "SELECT external_id FROM fetch_subscriptions WHERE kind = 'account' AND organisation_id = ?", w.org.ID()), int(tracked.Total))
	storetest.RequireConsistent(w.t, w.db, w.org)
}

func TestYouTubeUserName_isAnotherChannelThanTheEqualHandle(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		name, confirmed := w.twoChannels()
		requested := w.userNames(map[string]string{name: confirmed})
		second := w.newOrganisation()
		byUser, byHandle := w.trackAccount(userLink(t, name), store.TrackLatest30), w.trackAccount(w.accountLink(link.YouTube, name), store.TrackLatest30)
		other := second.trackAccount(userLink(t, name), store.TrackLatest30)
		require.NotEqual(t, byUser, byHandle)

		before := w.storedAccount(store.Ref{Link: userLink(t, name)})
		require.Equal(t, byUser.ID, before.ID)
		require.Equal(t, name, link.DisplayUsername(before.Username))
		require.Equal(t, "https://www.youtube.com/user/"+name, before.Link)
		require.Equal(t, byHandle.ID, w.storedAccount(store.Ref{Link: w.accountLink(link.YouTube, name)}).ID)

		w.startCollector()
		w.waitForAccountFetch(byUser, 0)
		w.waitForAccountFetch(byHandle, 0)
		second.waitForAccountFetch(other, 0)
		w.waitForIdleQueue()
		require.ElementsMatch(t, []string{"forUsername=" + name, "forHandle=@" + name}, requested())
		w.requireHandle(byUser, confirmed)
		w.requireHandle(byHandle, name)
		second.requireHandle(other, confirmed)
		w.requireTargetsByID(2)

		// After the fetch, the link /user/NAME still finds the account.
		require.Equal(t, byUser.ID, w.storedAccount(store.Ref{Link: userLink(t, name)}).ID)
		ids, err := w.org.TrackedAccountIDs(t.Context(), []link.Link{userLink(t, name), w.accountLink(link.YouTube, name), w.accountLink(link.YouTube, confirmed)})
		require.NoError(t, err)
		require.Equal(t, byUser.ID, ids[0])
		require.Equal(t, byHandle.ID, ids[1])
		require.Equal(t, byUser.ID, ids[2])
		require.Equal(t, byUser, w.trackAccount(userLink(t, name), store.TrackLatest30))
		require.Equal(t, confirmed, w.storedAccount(byUser).Username, "the confirmed handle must stay")
		db.Clock.Advance(12 * time.Hour)
		refreshed, err := w.org.RefreshAccount(t.Context(), store.Ref{Link: userLink(t, name)}, nil)
		require.NoError(t, err)
		require.True(t, refreshed.Scheduled)
		w.waitForAccountFetch(byUser, store.InstantOf(db.Clock.Now()))
		w.requireTargetsByID(2)
		storetest.StopAccounts(t, w.org, userLink(t, name))
		require.True(t, w.storedAccount(byUser).Removed)
		require.True(t, w.storedAccount(byHandle).Tracked)
		require.Equal(t, byUser, w.trackAccount(userLink(t, name), store.TrackLatest30))
		require.EqualValues(t, 2, w.accountCount())
	})
}

func TestYouTubeUserName_isMergedWithTheHandleOfTheSameChannel(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sameName, fetchFirst, handleFirst bool
	}{
		"equal names, both new":                                {sameName: true},
		"equal names, both new, handle tracked first":          {sameName: true, handleFirst: true},
		"equal names, handle fetched before":                   {sameName: true, handleFirst: true, fetchFirst: true},
		"equal names, user name fetched before":                {sameName: true, fetchFirst: true},
		"different names, both new":                            {},
		"different names, both new, handle tracked first":      {handleFirst: true},
		"different names, handle fetched before":               {handleFirst: true, fetchFirst: true},
		"different names, user name fetched before the handle": {fetchFirst: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				w := newTestSystem(t, db)
				user, handle := w.twoChannels()
				if tt.sameName {
					user = handle
				}
				w.userNames(map[string]string{user: handle})
				second := w.newOrganisation()
				links := []link.Link{userLink(t, user), w.accountLink(link.YouTube, handle)}
				if tt.handleFirst {
					links[0], links[1] = links[1], links[0]
				}
				first := w.trackAccount(links[0], store.TrackLatest30)
				if tt.fetchFirst {
					w.startCollector()
					w.waitForAccountFetch(first, 0)
					w.waitForIdleQueue()
				}
				db.Clock.Advance(time.Minute)
				w.trackAccount(links[1], store.TrackLatest30)
				other := second.trackAccount(userLink(t, user), store.TrackLatest30)
				if !tt.fetchFirst {
					w.startCollector()
				}
				second.waitForAccountFetch(other, 0)
				w.waitForIdleQueue()
				// The merge keeps the record that was fetched first, so it is not known which one remains.
				kept := store.Ref{ID: w.storedAccount(store.Ref{Link: userLink(t, user)}).ID}
				if tt.fetchFirst {
					require.Equal(t, first, kept)
				}
				for _, o := range []struct {
					*testSystem
					ref store.Ref
				}{{w, kept}, {second, other}} {
					o.requireHandle(o.ref, handle)
					require.EqualValues(t, 1, o.accountCount())
					require.Equal(t, o.ref.ID, o.storedAccount(store.Ref{Link: userLink(t, user)}).ID)
					o.requireTargetsByID(1)
				}
			})
		})
	}
}
