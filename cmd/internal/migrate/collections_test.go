package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
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
	var b backfill.SeedBatch
	for n := range maxListed + 1 {
		b.Collections = append(b.Collections, backfill.SeedCollection{ID: store.NewID(), Name: strconv.Itoa(n), CreatedAt: store.InstantOf(db.Clock.Now())})
	}
	require.NoError(t, backfill.Seed(t.Context(), st.Org(made.ID), b))
	s := newService(t)
	s.responses["/collections"] = fmt.Sprintf(`{"data":[{"id":"c","name":"%d","access":"private"}],"pagination":{"total":1,"total_pages":1}}`, maxListed)
	s.responses["/collections/c/accounts"] = s.responses["/accounts"]
	summary, err := s.runMigrationInto(t, st.Org(made.ID), db, filepath.Join(t.TempDir(), "work"))
	require.NoError(t, err)
	require.Zero(t, summary.NewCollections)
}

func TestMigration_refusesCollectionsThatTheAPIWouldRefuse(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	for want, members := range map[string]map[string]any{
		`collection "C" (c): hashtags.0 must have at most 100 characters, not 101`: {"hashtags": []string{strings.Repeat("a", 101)}},
		"hashtags.0 must be a hashtag without white space":                         {"hashtags": []string{"a b"}},
		"hashtags.0 contains the control character U+0085":                         {"hashtags": []string{"a\u0085b"}},
		"name contains the control character U+000A":                               {"name": "a\nb"},
		"name must have at most 100 characters, not 101":                           {"name": strings.Repeat("a", 101)},
		"display_settings.title contains the character U+202E":                     {"display_settings": map[string]any{"title": "\u202ea"}},
	} {
		c := map[string]any{"id": "c", "name": "C", "access": "private"}
		maps.Copy(c, members)
		list := func() string {
			text, err := json.Marshal(map[string]any{"data": []any{c}, "pagination": map[string]any{"total": 1, "total_pages": 1}})
			require.NoError(t, err)
			return string(text)
		}
		s, dir := newService(t), filepath.Join(t.TempDir(), "work")
		s.responses["/collections"], s.responses["/collections/c/accounts"] = list(), s.responses["/accounts"]
		o, _, err := s.runMigration(t, db, dir)
		require.ErrorContains(t, err, want)
		require.Empty(t, collectionsByName(t, o))

		// The same folder works after the collection was changed at the service. Other display settings are not checked.
		c["name"], c["hashtags"], c["display_settings"] = "Changed", []string{"#Mine"}, map[string]any{"title": 5, "description": "one\ntwo", "theme": "hosted"}
		s.responses["/collections"] = list()
		_, err = s.runMigrationInto(t, o, db, dir)
		require.NoError(t, err)
		require.Equal(t, []string{"mine"}, collectionsByName(t, o)["Changed"].Hashtags)
	}
}

// collectionsByName returns the collections of an organisation. The key is the name.
func collectionsByName(t *testing.T, o *store.Org) map[string]store.Collection {
	t.Helper()
	page, err := o.ListCollections(t.Context(), store.CollectionQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: maxListed}})
	require.NoError(t, err)
	out := map[string]store.Collection{}
	for _, c := range page.Rows {
		out[c.Name], err = o.Collection(t.Context(), c.ID, false)
		require.NoError(t, err)
	}
	require.Len(t, out, len(page.Rows))
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
			_, err := db.Share(t.Context(), store.ShareCollection, *c.Hash)
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
		_, err = o.UpdateCollection(t.Context(), id, store.CollectionPatch{SharingPatch: store.SharingPatch{Access: new(store.AccessPrivate), ShareExpiry: &store.Change[store.Instant]{}}})
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

// The help of the command migrate-from states what this test checks.
func TestMigration_addsOnlyMembersAndMissingDataToExistingRecords(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	made, err := db.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	o := db.Org(made.ID)
	for _, name := range []string{"bare", "styled"} {
		_, err := o.CreateCollection(t.Context(), store.NewCollection{Name: name, Access: store.AccessPrivate, Hashtags: []string{"here"}})
		require.NoError(t, err)
	}
	own, remote := json.RawMessage(`{"own":1}`), `{"remote":1}`
	_, err = o.UpdateCollection(t.Context(), collectionsByName(t, o)["styled"].ID, store.CollectionPatch{SharingPatch: store.SharingPatch{DisplaySettings: own}})
	require.NoError(t, err)
	stopped, err := link.Parse("https://www.tiktok.com/@bb")
	require.NoError(t, err)
	_, err = o.TrackAccounts(t.Context(), store.TrackRequest{Links: []link.Link{stopped}, Type: store.TrackNewOnly})
	require.NoError(t, err)
	storetest.StopAccounts(t, o, stopped)

	s := newService(t)
	s.responses["/collections"] = `{"data":[{"id":"bare","name":"bare","access":"public","display_settings":` + remote + `,"hashtags":["there"]},{"id":"styled","name":"styled","access":"public","display_settings":` + remote + `}],"pagination":{"total":2,"total_pages":1}}`
	s.responses["/collections/bare/accounts"], s.responses["/collections/styled/accounts"] = s.responses["/accounts"], s.responses["/accounts"]
	s.responses["/accounts"] = `{"data":[{"account_id":"b","account_link":"https://www.tiktok.com/@bb","tracking_type":"all"}],"pagination":{"total":1,"total_pages":1}}`
	s.responses["/videos"] = `{"data":[{"ad_id":"v1","ad_link":"` + serviceVideo + `","label_ids":["bare"]}],"pagination":{"total":1,"total_pages":1}}`
	summary, err := s.runMigrationInto(t, o, db, filepath.Join(t.TempDir(), "work"))
	require.NoError(t, err)
	require.Zero(t, summary.NewCollections+summary.InvalidAccounts)
	require.EqualValues(t, 1, summary.Members)
	for name, settings := range map[string]string{"bare": remote, "styled": string(own)} {
		c := collectionsByName(t, o)[name]
		require.Equal(t, settings, *c.DisplaySettings)
		require.Equal(t, store.AccessPrivate, c.Access)
		require.Equal(t, []string{"here"}, c.Hashtags)
	}
	a, err := o.Account(t.Context(), store.Ref{Link: stopped})
	require.NoError(t, err)
	require.True(t, a.Tracked)
}
