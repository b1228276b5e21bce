package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/storetest"
)

// The organisation that receives the data can have more collections than one query returns.
func TestMigration_findsExistingCollectionsAfterTheFirstPage(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	made, err := db.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	st, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, MaxCollections: store.MaxLabels})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	var b backfill.LoadBatch
	for n := range maxListed + 1 {
		b.Collections = append(b.Collections, backfill.LoadCollection{ID: store.NewID(), Name: strconv.Itoa(n), CreatedAt: store.InstantOf(db.Clock.Now())})
	}
	require.NoError(t, backfill.Load(t.Context(), st.Org(made.ID), b))
	s := newService(t)
	s.responses["/collections"] = fmt.Sprintf(`{"data":[{"id":"c","name":"%d","access":"private"}],"pagination":{"total":1,"total_pages":1}}`, maxListed)
	s.responses["/collections/c/accounts"] = s.responses["/accounts"]
	summary, err := s.runMigrationInto(t, st.Org(made.ID), db, filepath.Join(t.TempDir(), "work"))
	require.NoError(t, err)
	require.Zero(t, summary.NewCollections)
}

// collectionsByName returns the collections of an organisation. The key is the name.
func collectionsByName(t *testing.T, o *store.Org) map[string]store.Collection {
	t.Helper()
	page, err := o.Collections(t.Context(), store.CollectionQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: maxListed}})
	require.NoError(t, err)
	out := map[string]store.Collection{}
	for _, c := range page.Collections {
		out[c.Name], err = o.Collection(t.Context(), c.ID, false)
		require.NoError(t, err)
	}
	require.Len(t, out, len(page.Collections))
	return out
}

func TestMigration_copiesWhenSharePagesClose(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		past, future := store.InstantOf(db.Clock.Now().Add(-time.Hour)), store.InstantOf(db.Clock.Now().Add(time.Hour))
		s := newService(t)
		var data []map[string]any
		want := map[string]*store.Instant{"open": nil, "closes": &future, "closed": &past, "protected": &future, "private": &past}
		for name, at := range want {
			access := map[string]string{"protected": "protected", "private": "private"}[name]
			c := map[string]any{"id": name, "name": name, "access": cmp.Or(access, "public"), "display_settings": map[string]any{"a": 1}}
			if at != nil {
				c["share_expires_at"] = at.Time().Format("2006-01-02T15:04:05.000000+00:00")
			}
			data = append(data, c)
			s.responses["/collections/"+name+"/accounts"] = s.responses["/accounts"]
		}
		text, err := json.Marshal(map[string]any{"data": data, "pagination": map[string]any{"total": len(data), "total_pages": 1}})
		require.NoError(t, err)
		s.responses["/collections"] = string(text)
		o, summary, err := s.runMigration(t, db, filepath.Join(t.TempDir(), "work"))
		require.NoError(t, err)
		require.Equal(t, 5, summary.NewCollections)
		require.Equal(t, 1, summary.Protected)
		isOpen := func(c store.Collection) bool {
			if c.Hash == nil {
				return false
			}
			_, err := db.Share(t.Context(), *c.Hash)
			if err != nil {
				require.ErrorIs(t, err, store.ErrNotFound)
			}
			return err == nil
		}
		for name, c := range collectionsByName(t, o) {
			require.Equal(t, want[name], c.ShareExpiresAt, name)
			require.Equal(t, name == "open" || name == "closes", isOpen(c), name)
			require.Equal(t, name == "open" || name == "closes" || name == "closed", c.Access == store.AccessPublic, name)
			require.NotNil(t, c.DisplaySettings, name)
		}

		// A repeated migration must not change collections that exist.
		id := collectionsByName(t, o)["closes"].ID
		_, err = o.UpdateCollection(t.Context(), id, store.CollectionPatch{Access: new(store.AccessPrivate), ShareExpiry: &store.ShareExpiryChange{}})
		require.NoError(t, err)
		summary, err = s.runMigrationInto(t, o, db, filepath.Join(t.TempDir(), "work"))
		require.NoError(t, err)
		require.Zero(t, summary.NewCollections+summary.Protected)
		require.Nil(t, collectionsByName(t, o)["closes"].ShareExpiresAt)
		require.Equal(t, store.AccessPrivate, collectionsByName(t, o)["closes"].Access)
	})
}

// A migration that is interrupted after it created a collection must complete this collection in its next run.
func TestMigration_completesCollectionsOfInterruptedRun(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	s, dir := newService(t), filepath.Join(t.TempDir(), "work")
	future := store.InstantOf(db.Clock.Now().Add(time.Hour))
	s.responses["/collections"] = fmt.Sprintf(`{"data":[{"id":"c","name":"C","access":"public","share_expires_at":%q},{"id":"d","name":"D","access":"public","display_settings":{"a":1}}],"pagination":{"total":2,"total_pages":1}}`,
		future.Time().Format(time.RFC3339Nano))
	s.responses["/collections/c/accounts"], s.responses["/collections/d/accounts"] = s.responses["/accounts"], s.responses["/accounts"]
	s.responses["/videos"] = "<html>"
	o, _, err := s.runMigration(t, db, dir)
	require.Error(t, err)
	ids := map[string]uuid.UUID{"c": store.NewID(), "d": store.NewID()}
	text, err := json.Marshal(ids)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, newIDsFile), text, 0o600))
	_, err = o.CreateCollection(t.Context(), store.NewCollection{ID: ids["c"], Name: "C", Access: store.AccessPrivate})
	require.NoError(t, err)
	s.responses["/videos"] = s.responses["/accounts"]
	summary, err := s.runMigrationInto(t, o, db, dir)
	require.NoError(t, err)
	require.NoDirExists(t, dir)
	require.Equal(t, 2, summary.NewCollections)
	made := collectionsByName(t, o)
	require.Len(t, made, 2)
	require.Equal(t, ids["c"], made["C"].ID)
	require.Equal(t, store.AccessPublic, made["C"].Access)
	require.Equal(t, &future, made["C"].ShareExpiresAt)
}
