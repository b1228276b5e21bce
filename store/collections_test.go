package store_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// updateCollection applies a patch to a collection and returns the changed collection.
func updateCollection(t *testing.T, o *store.Org, id uuid.UUID, p store.CollectionPatch) store.Collection {
	t.Helper()
	c, err := o.UpdateCollection(t.Context(), id, p)
	require.NoError(t, err)
	if len(c.Hashtags) == 0 {
		c.Hashtags = nil // if a collection has no hashtags, the methods that read collections leave the field Hashtags nil
	}
	return c
}

// readCollection returns a collection without its numbers of videos and accounts.
func readCollection(t *testing.T, o *store.Org, id uuid.UUID) store.Collection {
	t.Helper()
	c, err := o.Collection(t.Context(), id, false)
	require.NoError(t, err)
	return c
}

// patchWithParent returns a patch that makes a collection a child of the collection with the id parentID. If parentID is nil, the collection becomes a root
// collection.
func patchWithParent(parentID *uuid.UUID) store.CollectionPatch {
	return store.CollectionPatch{Parent: &store.Change[uuid.UUID]{To: parentID}}
}

func TestCollection_returnsTheCollectionThatWasCreated(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, token := storetest.NewOrg(t, db), store.NewID()
		root := storetest.Collection(t, o, "Root", nil)
		c, err := o.CreateCollection(t.Context(), store.NewCollection{Name: "Hunde 🐶", ParentID: &root.ID, Access: store.AccessPublic,
			Hashtags: []string{"#Dog", "cat", "DOG", " ", "#"}, CreatedBy: token})
		require.NoError(t, err)
		now := store.InstantOf(db.Clock.Now())
		require.Regexp(t, `^[A-Za-z0-9]{14}$`, *c.Hash)
		require.Equal(t, store.Collection{OrganisationID: o.ID(), ID: c.ID, ParentID: &root.ID, Name: "Hunde 🐶", Sharing: store.Sharing{Access: store.AccessPublic, Hash: c.Hash},
			CreatedBy: token, CreatedAt: now, UpdatedAt: now, Hashtags: []string{"cat", "dog"}}, c)
		require.Equal(t, c, readCollection(t, o, c.ID))
		require.Nil(t, root.Hash, "a private collection must have no share page")

		_, err = o.CreateCollection(t.Context(), store.NewCollection{Name: "Protected", Access: store.AccessProtected})
		require.ErrorIs(t, err, store.ErrPasswordRequired)
		foreign := storetest.Collection(t, storetest.NewOrg(t, db), "Foreign", nil)
		for _, parent := range []uuid.UUID{store.NewID(), foreign.ID, uuid.Nil} {
			_, err = o.CreateCollection(t.Context(), store.NewCollection{Name: "Child", Access: store.AccessPrivate, ParentID: &parent})
			require.ErrorIs(t, err, store.ErrNotFound)
			require.ErrorContains(t, err, parent.String())
		}
	})
}

func TestUpdateCollection_changesOnlyTheGivenFields(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		parent := storetest.Collection(t, o, "Parent", nil)
		c, err := o.CreateCollection(t.Context(), store.NewCollection{Name: "Old", Access: store.AccessPrivate, Hashtags: []string{"dog"}})
		require.NoError(t, err)
		want := c
		for name, step := range map[string]struct {
			patch  store.CollectionPatch
			change func()
		}{
			"name":     {store.CollectionPatch{Name: new("New")}, func() { want.Name = "New" }},
			"parent":   {patchWithParent(&parent.ID), func() { want.ParentID = &parent.ID }},
			"settings": {store.CollectionPatch{SharingPatch: store.SharingPatch{DisplaySettings: json.RawMessage(`{"title":"T","own":[1]}`)}}, func() { want.DisplaySettings = new(`{"title":"T","own":[1]}`) }},
			"hashtags": {store.CollectionPatch{Hashtags: &[]string{"#B", "a"}}, func() { want.Hashtags = []string{"a", "b"} }},
			"password": {store.CollectionPatch{SharingPatch: store.SharingPatch{PasswordHash: new("$argon2id$")}}, func() { want.PasswordHash = new("$argon2id$") }},
			"nothing":  {store.CollectionPatch{}, func() {}},
		} {
			got := updateCollection(t, o, c.ID, step.patch)
			step.change()
			require.Greater(t, got.UpdatedAt, want.UpdatedAt, "%s: UpdatedAt must rise with each change, even if the clock shows the same time", name)
			want.UpdatedAt = got.UpdatedAt
			require.Equal(t, want, got, name)
			require.Equal(t, want, readCollection(t, o, c.ID), name)
		}
		got := updateCollection(t, o, c.ID, store.CollectionPatch{SharingPatch: store.SharingPatch{DisplaySettings: json.RawMessage(`null`)}, Parent: &store.Change[uuid.UUID]{}, Hashtags: &[]string{}})
		require.Nil(t, got.ParentID)
		require.Nil(t, got.DisplaySettings)
		require.Empty(t, got.Hashtags)
		require.Empty(t, readCollection(t, o, c.ID).Hashtags)

		for _, id := range []uuid.UUID{store.NewID(), uuid.Nil} {
			_, err := o.UpdateCollection(t.Context(), id, store.CollectionPatch{Name: new("X")})
			require.ErrorIs(t, err, store.ErrNotFound)
			_, err = o.UpdateCollection(t.Context(), c.ID, patchWithParent(&id))
			require.ErrorIs(t, err, store.ErrNotFound, "an unknown parent must be refused")
		}
	})
}

func TestUpdateCollection_keepsTheAddressOfTheSharePage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		c := storetest.Collection(t, o, "Shared", nil)
		access := func(a store.Access) store.CollectionPatch {
			return store.CollectionPatch{SharingPatch: store.SharingPatch{Access: &a}}
		}
		_, err := o.UpdateCollection(t.Context(), c.ID, access(store.AccessProtected))
		require.ErrorIs(t, err, store.ErrPasswordRequired)
		require.Equal(t, c, readCollection(t, o, c.ID), "a refused update must change nothing")

		withPassword := access(store.AccessProtected)
		withPassword.PasswordHash = new("$argon2id$")
		page := updateCollection(t, o, c.ID, withPassword).Hash
		require.NotNil(t, page)
		for _, a := range []store.Access{store.AccessPrivate, store.AccessPublic, store.AccessProtected} { // the collection keeps its password, so AccessProtected is allowed again
			require.Equal(t, page, updateCollection(t, o, c.ID, access(a)).Hash)
		}
	})
}

func TestUpdateCollection_refusesAnOutdatedVersion(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		c := storetest.Collection(t, o, "First", nil)
		second := updateCollection(t, o, c.ID, store.CollectionPatch{Name: new("Second"), ExpectedUpdatedAt: &c.UpdatedAt})
		_, err := o.UpdateCollection(t.Context(), c.ID, store.CollectionPatch{Name: new("Third"), ExpectedUpdatedAt: &c.UpdatedAt})
		require.ErrorIs(t, err, store.ErrStale)
		require.Equal(t, second, readCollection(t, o, c.ID))
		require.ErrorIs(t, o.DeleteCollection(t.Context(), c.ID, &c.UpdatedAt), store.ErrStale)
		require.NoError(t, o.DeleteCollection(t.Context(), c.ID, &second.UpdatedAt))
		require.ErrorIs(t, o.DeleteCollection(t.Context(), c.ID, nil), store.ErrNotFound)
	})
}

func TestCollections_refuseCyclesAndMoreThan16Levels(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const deepest = 16
		o := storetest.NewOrg(t, db)
		chain := []store.Collection{storetest.Collection(t, o, "1", nil)}
		for len(chain) < deepest {
			chain = append(chain, storetest.Collection(t, o, "below", &chain[len(chain)-1].ID))
		}
		_, err := o.CreateCollection(t.Context(), store.NewCollection{Name: "17", Access: store.AccessPrivate, ParentID: &chain[deepest-1].ID})
		require.ErrorIs(t, err, store.ErrTooDeep)
		require.ErrorContains(t, err, "16")

		for _, parent := range chain {
			_, err := o.UpdateCollection(t.Context(), chain[0].ID, patchWithParent(&parent.ID))
			require.ErrorIs(t, err, store.ErrCycle)
		}
		other := storetest.Collection(t, o, "other", nil)
		_, err = o.UpdateCollection(t.Context(), chain[0].ID, patchWithParent(&other.ID))
		require.ErrorIs(t, err, store.ErrTooDeep, "a move must be refused if it would bring a child collection below the deepest allowed level")
		updateCollection(t, o, chain[1].ID, patchWithParent(&other.ID))
		updateCollection(t, o, chain[0].ID, patchWithParent(&chain[deepest-2].ID)) // the moved collection is now on level 16, the deepest level
		require.Equal(t, chain[deepest-2].ID, *readCollection(t, o, chain[0].ID).ParentID)
	})
}

func TestUpdateCollection_refusesACycleFromConcurrentMoves(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		a, b := storetest.Collection(t, o, "a", nil), storetest.Collection(t, o, "b", nil)
		var err error
		finish := storetest.RunBeforeStatement(t, db, "parent_id IN", func(s *store.Store) {
			_, err = s.Org(o.ID()).UpdateCollection(t.Context(), b.ID, patchWithParent(&a.ID))
		})
		updateCollection(t, o, a.ID, patchWithParent(&b.ID)) // the update of collection b starts directly before the update of collection a reads the descendants of a
		finish()
		require.ErrorIs(t, err, store.ErrCycle)
		require.Nil(t, readCollection(t, o, b.ID).ParentID)
	})
}

func TestDeleteCollection_movesChildrenToTheParentAndKeepsVideosTracked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		root := storetest.Collection(t, o, "root", nil)
		middle := storetest.Collection(t, o, "middle", &root.ID)
		leaf := storetest.Collection(t, o, "leaf", &middle.ID)
		_, err := o.Track(t.Context(), store.TrackRequest{Links: storetest.VideoLinks(t, 2), CollectionIDs: []uuid.UUID{middle.ID}})
		require.NoError(t, err)
		_, err = o.AddAccounts(t.Context(), middle.ID, []uuid.UUID{storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).ID})
		require.NoError(t, err)
		updateCollection(t, o, middle.ID, store.CollectionPatch{Hashtags: &[]string{"dog"}})
		db.Clock.Advance(time.Second)

		require.NoError(t, o.DeleteCollection(t.Context(), middle.ID, nil))
		require.Equal(t, root.ID, *readCollection(t, o, leaf.ID).ParentID)
		require.Greater(t, readCollection(t, o, leaf.ID).UpdatedAt, leaf.UpdatedAt)
		require.Empty(t, storetest.VideoOf(t, o, storetest.VideoLink(t, 0)).Labels)
		require.EqualValues(t, 2, storetest.ListVideos(t, o, store.VideoQuery{}).Total)
		rows := storetest.StoredRows(t, db, o)
		for _, table := range []string{"collection_videos", "collection_accounts", "collection_hashtags"} {
			require.NotContains(t, strings.Join(rows[table], ""), middle.ID.String(), table)
		}
		require.NoError(t, o.DeleteCollection(t.Context(), root.ID, nil))
		require.Nil(t, readCollection(t, o, leaf.ID).ParentID)
	})
}

func TestCollections_areFilteredOrderedAndPaged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Collection(t, storetest.NewOrg(t, db), "Foreign", nil)
		add := func(name string, parent *uuid.UUID) uuid.UUID {
			db.Clock.Advance(time.Second)
			return storetest.Collection(t, o, name, parent).ID
		}
		b := add("b", nil)
		a := add("a", nil)
		small := add("Ä", &b)
		ba := add("B", &b)
		baa := add("c", &ba)
		storetest.Track(t, o, storetest.VideoLinks(t, 3)...)
		for c, videos := range map[uuid.UUID][]link.Link{a: {storetest.VideoLink(t, 0)}, ba: {storetest.VideoLink(t, 0), storetest.VideoLink(t, 1), storetest.VideoLink(t, 2)}, baa: {storetest.VideoLink(t, 1), storetest.VideoLink(t, 2)}} {
			var ids []uuid.UUID
			for _, l := range videos {
				ids = append(ids, storetest.VideoOf(t, o, l).ID)
			}
			_, err := o.AddVideos(t.Context(), c, ids, nil)
			require.NoError(t, err)
		}
		_, err := o.AddAccounts(t.Context(), small, []uuid.UUID{storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).ID})
		require.NoError(t, err)
		db.Clock.Advance(time.Second)
		updateCollection(t, o, b, store.CollectionPatch{Hashtags: &[]string{"z", "y"}})

		names := map[uuid.UUID]string{a: "a", b: "b", small: "Ä", ba: "B", baa: "c"}
		for name, c := range map[string]struct {
			query store.CollectionQuery
			want  []uuid.UUID
		}{
			"all collections, the newest first":                 {store.CollectionQuery{Order: store.Order{Column: "created_at", Descending: true}}, []uuid.UUID{baa, ba, small, a, b}},
			"all collections, the most recently changed first":  {store.CollectionQuery{Order: store.Order{Column: "updated_at", Descending: true}}, []uuid.UUID{b, baa, ba, small, a}},
			"all collections, ordered by the bytes of the name": {store.CollectionQuery{Order: store.Order{Column: "name"}}, []uuid.UUID{ba, a, b, baa, small}},
			"all collections, most videos first":                {store.CollectionQuery{Order: store.Order{Column: "video_count", Descending: true}}, []uuid.UUID{ba, small, baa, a, b}},
			"all collections, fewest accounts first":            {store.CollectionQuery{Order: store.Order{Column: "account_count"}}, []uuid.UUID{b, a, ba, baa, small}},
			"roots":                                             {store.CollectionQuery{Roots: true, Order: store.Order{Column: "name"}}, []uuid.UUID{a, b}},
			"children":                                          {store.CollectionQuery{ParentID: &b, Order: store.Order{Column: "name"}}, []uuid.UUID{ba, small}},
			"whole subtree":                                     {store.CollectionQuery{ParentID: &b, Subtree: true, Order: store.Order{Column: "name"}}, []uuid.UUID{ba, baa, small}},
			"subtree of a collection without children":          {store.CollectionQuery{ParentID: &a, Subtree: true, Order: store.Order{Column: "name"}}, []uuid.UUID{}},
			"children of an unknown collection":                 {store.CollectionQuery{ParentID: new(store.NewID()), Order: store.Order{Column: "name"}}, []uuid.UUID{}},
		} {
			for _, size := range []int{100, 2} {
				got, query := []uuid.UUID{}, c.query
				for query.Window.Limit = size; ; {
					page, err := o.ListCollections(t.Context(), query)
					require.NoError(t, err, name)
					require.EqualValues(t, len(c.want), page.Total, name)
					for _, collection := range page.Rows {
						got = append(got, collection.ID)
						require.Equal(t, collection.ID == b, len(collection.Hashtags) == 2, "the second collection must have two hashtags, and the other collections none: %s", collection.Name)
					}
					if page.Next() == nil {
						break
					}
					query.Window.After = page.Next()
				}
				require.Equal(t, c.want, got, "%s, %d collections per page; the names of the collections: %v", name, size, names)
			}
		}
	})
}

// sumOfVideos returns the number of videos and the sum of their known views. Views is nil if no views are known.
func sumOfVideos(videos []store.Video) store.CollectionSum {
	sum := store.CollectionSum{Videos: int64(len(videos))}
	for _, v := range videos {
		switch {
		case v.Latest.Views == nil:
		case sum.Views == nil:
			sum.Views = v.Latest.Views
		default:
			sum.Views = new(*sum.Views + *v.Latest.Views)
		}
	}
	return sum
}

func TestCollection_containsAddedVideosAndVideosOfItsAccountsAndHashtags(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLinks(t, 4)...)
		facts := map[link.Link]ingest.VideoFacts{}
		for i, l := range storetest.VideoLinks(t, 4) {
			facts[l] = ingest.VideoFacts{Username: new([]string{"ann", "bob"}[i%2]), Title: new([]string{"#dog", "none"}[i/2])}
			if i != 2 { // the views of one video are unknown
				facts[l] = ingest.VideoFacts{Username: facts[l].Username, Title: facts[l].Title, Views: new(int64(1) << (10 * i))}
			}
		}
		storetest.Measure(t, db, db.Clock.Now(), facts)
		storetest.StopVideos(t, o, storetest.VideoLink(t, 3))
		id := func(i int) uuid.UUID { return storetest.VideoOf(t, o, storetest.VideoLink(t, i)).ID }
		c, err := o.CreateCollection(t.Context(), store.NewCollection{Name: "C", Access: store.AccessPrivate})
		require.NoError(t, err)
		memberVideos := func() (members []int) {
			for i := range 4 {
				if len(storetest.VideoOf(t, o, storetest.VideoLink(t, i)).Labels) > 0 {
					members = append(members, i)
				}
			}
			q := storetest.OrderedBy("created_at", false)
			q.CollectionID = &c.ID
			var listed []uuid.UUID
			for _, i := range members {
				if i != 3 {
					listed = append(listed, id(i))
				}
			}
			page := storetest.ListVideos(t, o, q)
			require.ElementsMatch(t, listed, idsOf(page.Rows), "the list must contain exactly the videos that have the collection as a label")
			counted, err := o.Collection(t.Context(), c.ID, true)
			require.NoError(t, err)
			require.EqualValues(t, len(listed), counted.VideoCount, "the number of videos of the collection must equal the length of the list")
			sums, err := o.CollectionSums(t.Context())
			require.NoError(t, err)
			require.Equal(t, sumOfVideos(page.Rows), sums[c.ID])
			q.CollectionID, q.Collections = nil, []string{strings.ToUpper(c.ID.String())}
			require.EqualValues(t, len(listed), storetest.ListVideos(t, o, q).Total, "the id of the collection must be accepted in upper case")
			return members
		}
		require.Empty(t, memberVideos())
		_, err = o.AddVideos(t.Context(), c.ID, []uuid.UUID{id(2), id(3)}, nil)
		require.NoError(t, err)
		require.Equal(t, []int{2, 3}, memberVideos(), "a stopped video must keep its label, but must be neither listed nor counted")
		ann := storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@ann")).ID
		_, err = o.AddAccounts(t.Context(), c.ID, []uuid.UUID{ann})
		require.NoError(t, err)
		require.Equal(t, []int{0, 2, 3}, memberVideos())
		updateCollection(t, o, c.ID, store.CollectionPatch{Hashtags: &[]string{"dog"}})
		require.Equal(t, []int{0, 1, 2, 3}, memberVideos())

		removed, err := o.RemoveVideos(t.Context(), c.ID, []uuid.UUID{id(0), id(2), id(3), store.NewID()})
		require.NoError(t, err)
		require.EqualValues(t, 2, removed, "only videos that were added directly can be removed")
		require.Equal(t, []int{0, 1, 2}, memberVideos(), "a removed video must stay a member if its account or a hashtag of its caption is in the collection")
		gone, err := o.RemoveAccounts(t.Context(), c.ID, []uuid.UUID{ann, store.NewID()})
		require.NoError(t, err)
		require.EqualValues(t, 1, gone)
		require.Equal(t, []int{0, 1}, memberVideos())
	})
}

func TestAddVideosAndAddAccounts_addNothingIfOneMemberIsUnknown(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		c, foreign := storetest.Collection(t, o, "C", nil), storetest.Collection(t, other, "Foreign", nil)
		mine := storetest.Track(t, o, storetest.VideoLinks(t, 2)...)
		theirs := storetest.Track(t, other, storetest.VideoLink(t, 1))[0]
		a := storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL))
		unknown := store.NewID()

		_, err := o.AddVideos(t.Context(), c.ID, []uuid.UUID{mine[0].ID, unknown, theirs.ID}, nil)
		var missing *store.NotFoundError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, "video", missing.Kind)
		require.ElementsMatch(t, []string{unknown.String(), theirs.ID.String()}, missing.Names)
		require.Empty(t, storetest.VideoOf(t, o, storetest.VideoLink(t, 0)).Labels)
		_, err = o.AddAccounts(t.Context(), c.ID, []uuid.UUID{a.ID, unknown})
		require.ErrorAs(t, err, &missing)
		require.Equal(t, store.NotFoundError{Kind: "account", Names: []string{unknown.String()}}, *missing)
		require.Empty(t, storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).Labels)

		for i, want := range []int64{2, 0} {
			added, err := o.AddVideos(t.Context(), c.ID, []uuid.UUID{mine[1].ID, mine[0].ID, mine[0].ID}, nil)
			require.NoError(t, err)
			require.Equal(t, want, added, "call %d", i)
			added, err = o.AddAccounts(t.Context(), c.ID, []uuid.UUID{a.ID})
			require.NoError(t, err)
			require.Equal(t, want/2, added)
		}
		for _, id := range []uuid.UUID{unknown, foreign.ID} {
			for name, change := range map[string]func() (int64, error){
				"add videos":      func() (int64, error) { return o.AddVideos(t.Context(), id, []uuid.UUID{mine[0].ID}, nil) },
				"add accounts":    func() (int64, error) { return o.AddAccounts(t.Context(), id, []uuid.UUID{a.ID}) },
				"remove videos":   func() (int64, error) { return o.RemoveVideos(t.Context(), id, []uuid.UUID{mine[0].ID}) },
				"remove accounts": func() (int64, error) { return o.RemoveAccounts(t.Context(), id, []uuid.UUID{a.ID}) },
			} {
				_, err := change()
				require.ErrorAs(t, err, &missing, name)
				require.Equal(t, store.NotFoundError{Kind: "collection", Names: []string{id.String()}}, *missing, name)
			}
		}
	})
}
