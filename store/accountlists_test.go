package store_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// createManyAccounts creates tracked accounts, stopped accounts, and accounts that exist only because a video is linked to them. Some have counts and
// others have none. createManyAccounts returns all of these accounts.
func createManyAccounts(t *testing.T, db *storetest.DB, o *store.Org) []store.Account {
	t.Helper()
	handles := []string{"ann", "bob", "cyd", "dan", "Eve", "fay", "gus", "hal"}
	facts := map[link.Link]ingest.VideoFacts{}
	for i, handle := range handles {
		l := storetest.ParseLink(t, fmt.Sprintf("https://www.tiktok.com/@%s/video/73012345678%08d", handle, i))
		storetest.Track(t, o, l) // tracking a video creates an untracked account that is linked to the video
		if i%3 != 0 {
			facts[l] = ingest.VideoFacts{Views: new(int64(i % 3)), UploadedAt: new(db.Clock.Now().AddDate(0, 0, -i%4))}
		}
		db.Clock.Advance(time.Second)
	}
	storetest.Measure(t, db, db.Clock.Now(), facts)
	for i, handle := range handles {
		if i%4 == 3 {
			continue // this account stays untracked
		}
		l := storetest.ParseLink(t, "https://www.tiktok.com/@"+handle)
		storetest.Follow(t, o, store.TrackNewOnly, l)
		if i%2 == 0 {
			storetest.DeliverAccount(t, db, ingest.AccountFacts{Followers: new(int64(i % 3))})
		} else {
			require.Len(t, storetest.Claim(t, db, link.TikTok, "account"), 1)
		}
		if i == 5 {
			storetest.StopAccounts(t, o, l)
		}
	}
	storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, "https://www.instagram.com/ann/"))
	var accounts []store.Account
	for _, id := range storetest.Column[string](t, db, "SELECT CAST(id AS text) FROM accounts WHERE organisation_id = ?", o.ID()) {
		a, err := o.Account(t.Context(), store.Ref{ID: uuid.MustParse(id)})
		require.NoError(t, err)
		accounts = append(accounts, a)
	}
	return accounts
}

// compareAccounts returns a comparison function that sorts accounts in the given order. Accounts without a value come last, and equal values
// are ordered by id.
func compareAccounts(o store.Order) func(a, b store.Account) int {
	key := func(a store.Account) (known bool, number float64, text string) {
		countKey := func(n *int64) (bool, float64, string) {
			if n == nil {
				return false, 0, ""
			}
			return true, float64(*n), ""
		}
		switch o.Column {
		case "username":
			return true, 0, a.Username
		case "latest_followers_count":
			return countKey(a.LatestFollowersCount)
		case "total_views":
			return countKey(a.Total.Views)
		case "views_gained_7d":
			return countKey(a.ViewsGained7d)
		case "median_views":
			if a.MedianViews == nil {
				return false, 0, ""
			}
			return true, *a.MedianViews, ""
		case "last_uploaded_at":
			if a.LastUploadedAt == nil {
				return false, 0, ""
			}
			return true, float64(*a.LastUploadedAt), ""
		}
		return true, float64(a.CreatedAt), ""
	}
	return func(a, b store.Account) int {
		knownA, numberA, textA := key(a)
		knownB, numberB, textB := key(b)
		if knownA != knownB {
			if knownA {
				return -1
			}
			return 1
		}
		c := cmp.Or(cmp.Compare(numberA, numberB), cmp.Compare(textA, textB), slices.Compare(a.ID[:], b.ID[:]))
		if o.Descending {
			return -c
		}
		return c
	}
}

func TestAccounts_areFilteredOrderedAndPaged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		all := createManyAccounts(t, db, o)
		c := storetest.Collection(t, o, "C", nil)
		members := []uuid.UUID{all[0].ID, all[3].ID, all[5].ID}
		_, err := o.AddAccounts(t.Context(), c.ID, members)
		require.NoError(t, err)
		for i, a := range all {
			all[i], err = o.Account(t.Context(), store.Ref{ID: a.ID})
			require.NoError(t, err)
		}
		in := func(a store.Account) bool { return slices.Contains(members, a.ID) }
		listed := func(a store.Account) bool { return a.Tracked && !a.Removed }

		for name, filter := range map[string]struct {
			query   store.AccountQuery
			matches func(store.Account) bool
		}{
			"tracked":                          {store.AccountQuery{}, listed},
			"including linked":                 {store.AccountQuery{IncludeLinked: true}, func(a store.Account) bool { return !a.Removed }},
			"including stopped":                {store.AccountQuery{IncludeRemoved: true}, func(a store.Account) bool { return a.Tracked || a.Removed }},
			"all":                              {store.AccountQuery{IncludeLinked: true, IncludeRemoved: true}, func(store.Account) bool { return true }},
			"by platform":                      {store.AccountQuery{Platform: new(link.Instagram)}, func(a store.Account) bool { return listed(a) && a.Platform == link.Instagram }},
			"by username":                      {store.AccountQuery{Username: new("ann")}, func(a store.Account) bool { return listed(a) && a.Username == "ann" }},
			"by the beginning of the username": {store.AccountQuery{UsernamePrefix: "a"}, func(a store.Account) bool { return listed(a) && a.Username == "ann" }},
			"by a text that LIKE would match":  {store.AccountQuery{UsernamePrefix: "a%"}, func(store.Account) bool { return false }},
			"by collection":                    {store.AccountQuery{CollectionID: &c.ID}, func(a store.Account) bool { return in(a) && !a.Removed }},
			"in a collection that is given by its name": {store.AccountQuery{Collections: []string{"C", "D"}}, func(a store.Account) bool { return listed(a) && in(a) }},
			"in a collection that is given by its id":   {store.AccountQuery{Collections: []string{c.ID.String()}}, func(a store.Account) bool { return listed(a) && in(a) }},
			"in an unknown collection":                  {store.AccountQuery{Collections: []string{"c"}}, func(store.Account) bool { return false }},
		} {
			want := slices.DeleteFunc(slices.Clone(all), func(a store.Account) bool { return !filter.matches(a) })
			for column := range store.AccountOrders {
				for _, descending := range []bool{false, true} {
					q := filter.query
					q.Order = store.Order{Column: column, Descending: descending}
					slices.SortFunc(want, compareAccounts(q.Order))
					q.Window.Limit = 3
					var got []store.Account
					for {
						page, err := o.ListAccounts(t.Context(), q)
						require.NoError(t, err)
						require.EqualValues(t, len(want), page.Total, "filter %q, ordered by %s", name, column)
						got = append(got, page.Rows...)
						if q.Window.After = page.Next(); q.Window.After == nil {
							break
						}
					}
					require.Equal(t, want, append([]store.Account{}, got...), "filter %q, ordered by %s, descending %t", name, column, descending)
				}
			}
		}
		_, err = o.ListAccounts(t.Context(), store.AccountQuery{CollectionID: new(store.NewID()), Order: store.Order{Column: "username"}})
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestAccountVideos_returnsTheVideosOfTheAccount(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLinks(t, 3)...)
		storetest.Track(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@other/video/7301234567890123456"))
		storetest.StopVideos(t, o, storetest.VideoLink(t, 2))
		for _, ref := range []store.Ref{{Link: storetest.ParseLink(t, storetest.AccountURL)}, {ID: storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).ID}} {
			page, err := o.ListAccountVideos(t.Context(), ref, storetest.OrderedBy("created_at", true))
			require.NoError(t, err)
			require.EqualValues(t, 2, page.Total)
			require.Len(t, page.Rows, 2)
		}
		_, err := o.ListAccountVideos(t.Context(), store.Ref{Link: storetest.ParseLink(t, "https://www.tiktok.com/@nobody")}, storetest.OrderedBy("created_at", true))
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestTrackedAccountIDs_returnsIDsInTheOrderOfTheLinks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		byHandle, byID := storetest.ParseLink(t, storetest.AccountURL), storetest.ParseLink(t, "https://www.youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q")
		tracked := storetest.Follow(t, o, store.TrackNewOnly, byHandle, byID, storetest.ParseLink(t, "https://www.instagram.com/gone/"))
		storetest.Track(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@linked/video/7301234567890123456"))
		_, err := o.StopAccounts(t.Context(), []uuid.UUID{tracked[2].ID})
		require.NoError(t, err)
		storetest.Follow(t, storetest.NewOrg(t, db), store.TrackNewOnly, storetest.ParseLink(t, "https://www.tiktok.com/@foreign"))
		ids, err := o.TrackedAccountIDs(t.Context(), []link.Link{storetest.ParseLink(t, "https://www.tiktok.com/@foreign"), byID, {}, storetest.ParseLink(t, "https://www.instagram.com/gone/"),
			byHandle, storetest.ParseLink(t, "https://www.tiktok.com/@linked"), storetest.ParseLink(t, "https://www.instagram.com/someone/")})
		require.NoError(t, err)
		require.Equal(t, []uuid.UUID{uuid.Nil, tracked[1].ID, uuid.Nil, uuid.Nil, tracked[0].ID, uuid.Nil, uuid.Nil}, ids)
	})
}

// The server binds cursors to the JSON of the query. So a new field must not change the JSON of queries without it: after an upgrade, callers continue
// with cursors of the previous release.
func TestAccountQuery_keepsItsJSONWithoutUsernamePrefix(t *testing.T) {
	t.Parallel()
	encoded, err := json.Marshal(store.AccountQuery{})
	require.NoError(t, err)
	require.NotContains(t, string(encoded), "UsernamePrefix")
}
