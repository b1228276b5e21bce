package ingest

import (
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// accountResolvers finds and creates the account records of authors, for each organisation.
type accountResolvers map[uuid.UUID]*store.AccountResolver

// forEach calls a function for each resolver, ordered by organisation. It stops at the first error and returns it.
func (r accountResolvers) forEach(do func(*store.AccountResolver) error) error {
	for _, org := range db.Distinct(slices.Collect(maps.Keys(r))) {
		if err := do(r[org]); err != nil {
			return err
		}
	}
	return nil
}

// findAccounts returns the account record of each video with a reported author, by Video.Key. It creates missing records. After writing the
// videos, the caller must call UpdateHandles of each resolver.
func (w videoWriter) findAccounts(videos []store.Video) (of map[db.RowKey]*store.Account, resolvers accountResolvers, err error) {
	authors := map[db.RowKey]store.Author{}
	for i := range videos {
		if f := w.outcomes[videos[i].Key()].Facts; f != nil && (f.AccountID != nil || f.AccountSourceID != nil || f.Username != nil) {
			a := store.Author{Platform: videos[i].Platform, Name: f.AccountName}
			db.Assign(&a.ExternalID, f.AccountID)
			db.Assign(&a.SourceID, f.AccountSourceID)
			db.Assign(&a.Username, f.Username)
			authors[videos[i].Key()] = a
		}
	}
	known, err := w.knownAccounts(authors)
	if err != nil {
		return nil, nil, err
	}
	resolvers = accountResolvers{}
	of = make(map[db.RowKey]*store.Account, len(authors))
	for i := range videos { // loop over the slice `videos`, because the map `authors` has no fixed order
		v := &videos[i]
		if a, ok := authors[v.Key()]; ok {
			if resolvers[v.OrganisationID] == nil {
				resolvers[v.OrganisationID] = store.NewAccountResolver(v.OrganisationID, w.fetchedAt, known[v.OrganisationID])
			}
			of[v.Key()] = resolvers[v.OrganisationID].Resolve(a)
		}
	}
	return of, resolvers, resolvers.forEach(func(r *store.AccountResolver) error { return r.SaveRows(w.tx) })
}

// knownAccounts reads the accounts that match one of the authors by an id or by the current handle. It returns the accounts of each organisation,
// ordered by account id.
func (w videoWriter) knownAccounts(authors map[db.RowKey]store.Author) (map[uuid.UUID][]*store.Account, error) {
	known, found := map[uuid.UUID][]*store.Account{}, map[db.RowKey]bool{}
	for _, by := range []struct {
		column, condition string
		of                func(store.Author) string
	}{
		{"external_id", "", func(a store.Author) string { return a.ExternalID }},
		{"source_id", "", func(a store.Author) string { return a.SourceID }},
		{"username", " AND accounts.handle_current", func(a store.Author) string { return a.Username }},
	} {
		names := map[[3]string]bool{} // several videos can have the same author
		var rows [][]any
		for k, a := range authors {
			name := [3]string{string(k.Org[:]), string(a.Platform), by.of(a)}
			if name[2] != "" && !names[name] {
				names[name], rows = true, append(rows, []any{k.Org, a.Platform, name[2]})
			}
		}
		if len(rows) == 0 {
			continue
		}
		list := db.OrgRows{Name: "wanted", Columns: []string{"organisation_id uuid", "platform text", "name text"}, Rows: rows}
		accounts, err := db.FindRows[*store.Account](w.tx, list, `SELECT accounts.* FROM wanted CROSS JOIN accounts WHERE accounts.organisation_id = {org}
 AND accounts.platform = wanted.platform AND accounts.`+by.column+` = wanted.name`+by.condition+`
 ORDER BY accounts.organisation_id, accounts.id`)
		if err != nil {
			return nil, err
		}
		for _, a := range accounts {
			if key := (db.RowKey{Org: a.OrganisationID, ID: a.ID}); !found[key] { // add each account once, although it can be found by several columns
				found[key], known[a.OrganisationID] = true, append(known[a.OrganisationID], a)
			}
		}
	}
	for _, accounts := range known {
		slices.SortFunc(accounts, func(a, b *store.Account) int { return slices.Compare(a.ID[:], b.ID[:]) })
	}
	return known, nil
}
