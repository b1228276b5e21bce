package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
)

// createCollections creates the collections of the remote server in this database, parents before children. It sets w.collections.
func (w *writer) createCollections(ctx context.Context) error {
	remote, err := parentsFirst(w.data.collections.Entries)
	if err != nil {
		return err
	}
	existing, err := w.collectionsByPlace(ctx)
	if err != nil {
		return err
	}
	newIDs, err := w.chooseIDs(remote)
	if err != nil {
		return err
	}
	w.collections = map[string]uuid.UUID{}
	places := placeCounter{}
	for n, c := range remote {
		w.Progress(Writing, n, len(remote))
		var parent *uuid.UUID
		if c.ParentID != nil {
			if id, copied := w.collections[*c.ParentID]; copied {
				parent = &id
			}
		}
		have, exists := existing[places.next(parent, c.Name)]
		// A repeated migration finds the collection by its place, and does not create it twice.
		if !exists || have.ID == newIDs[c.ID] {
			if have, err = w.createCollection(ctx, newIDs[c.ID], c, parent); err != nil {
				return err
			}
			w.summary.NewCollections++
			if c.isProtected() {
				w.summary.Protected++
			}
		}
		if err := w.copyDisplaySettings(ctx, &have, c); err != nil {
			return err
		}
		w.collections[c.ID] = have.ID
	}
	return nil
}

// parentsFirst returns the collections in an order in which each parent comes before its children. Collections with the same parent keep their order.
// A parent that is not one of the collections is ignored.
func parentsFirst(collections []collection) ([]collection, error) {
	waiting := map[string]bool{} // the ids of the collections that are not in `ordered` yet
	for _, c := range collections {
		waiting[c.ID] = true
	}
	var ordered []collection
	for len(ordered) < len(collections) {
		before := len(ordered)
		for _, c := range collections {
			if waiting[c.ID] && (c.ParentID == nil || !waiting[*c.ParentID]) {
				ordered = append(ordered, c)
				delete(waiting, c.ID)
			}
		}
		if len(ordered) == before {
			return nil, errors.New("the service returned collections that are each other's parents")
		}
	}
	return ordered, nil
}

// chooseIDs returns the ids of the collections to create. The keys are the ids of the remote collections. A migration that was interrupted after it had
// created a collection must recognise this collection, so the ids are saved before the first collection is created.
func (w *writer) chooseIDs(remote []collection) (map[string]uuid.UUID, error) {
	return readOrCreateFile(w.Dir, newIDsFile, func() (map[string]uuid.UUID, error) {
		chosen := map[string]uuid.UUID{}
		for _, c := range remote {
			chosen[c.ID] = store.NewID()
		}
		return chosen, nil
	})
}

// place identifies a collection by its parent, name and number.
type place struct {
	parent uuid.UUID // zero if the collection has no parent
	name   string
	nth    int // 1, 2 and so on for collections with the same parent and name
}

// placeCounter has the number of collections with the same parent and name. The field nth of its keys is 0.
type placeCounter map[place]int

// next counts a collection with the given parent and name, and returns the place of this collection.
func (c placeCounter) next(parent *uuid.UUID, name string) place {
	p := place{name: name}
	if parent != nil {
		p.parent = *parent
	}
	c[p]++
	p.nth = c[p]
	return p
}

// collectionsByPlace returns all collections of the organisation in this database.
func (w *writer) collectionsByPlace(ctx context.Context) (map[place]store.Collection, error) {
	local, err := w.localCollections(ctx)
	if err != nil {
		return nil, err
	}
	existing, places := map[place]store.Collection{}, placeCounter{}
	for _, c := range local {
		existing[places.next(c.ParentID, c.Name)] = c
	}
	return existing, nil
}

// localCollections returns all collections of the organisation in this database, the oldest first.
func (w *writer) localCollections(ctx context.Context) ([]store.Collection, error) {
	var out []store.Collection
	query := store.CollectionQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: maxListed}}
	for {
		list, err := w.Org.ListCollections(ctx, query)
		if err != nil {
			return nil, err
		}
		out = append(out, list.Rows...)
		query.Window.After = list.Next()
		if query.Window.After == nil {
			return out, nil
		}
	}
}

// isProtected returns true if the remote collection has a password. The remote server does not reveal passwords.
func (c *collection) isProtected() bool { return store.Access(c.Access) == store.AccessProtected }

// createCollection creates a copy of a remote collection in this database, with the given id. If the remote collection has a password, the copy is private.
// The copy gets the time at which the share page of the remote collection closes. If an interrupted run created the copy, createCollection completes it.
func (w *writer) createCollection(ctx context.Context, id uuid.UUID, c collection, parent *uuid.UUID) (store.Collection, error) {
	// The copy is private until its expiry is stored, so its share page cannot be open for too long if the migration is interrupted here.
	made, err := w.Org.CreateCollection(ctx, store.NewCollection{ID: id, Name: c.Name, ParentID: parent, Access: store.AccessPrivate, Hashtags: c.Hashtags})
	if err != nil {
		return made, err
	}
	var patch store.CollectionPatch
	if store.Access(c.Access) == store.AccessPublic {
		patch.Access = new(store.AccessPublic)
	}
	if c.ShareExpiresAt != nil {
		patch.ShareExpiry = &store.Change[store.Instant]{To: new(store.InstantOf(*c.ShareExpiresAt))}
	}
	// If the collection was changed since it was created, an interrupted run has already completed it.
	if patch.Access == nil && patch.ShareExpiry == nil || made.UpdatedAt != made.CreatedAt {
		return made, nil
	}
	return w.Org.UpdateCollection(ctx, made.ID, patch)
}

// copyDisplaySettings gives the collection in this database the display settings of the remote collection. If the collection in this database already
// has display settings, copyDisplaySettings does nothing.
func (w *writer) copyDisplaySettings(ctx context.Context, localCollection *store.Collection, remoteCollection collection) error {
	settings := remoteCollection.DisplaySettings
	if localCollection.DisplaySettings != nil || len(settings) == 0 || string(settings) == "null" {
		return nil
	}
	if !json.Valid(settings) {
		return fmt.Errorf("the display settings of the collection %q are not JSON", remoteCollection.Name)
	}
	_, err := w.Org.UpdateCollection(ctx, localCollection.ID, store.CollectionPatch{SharingPatch: store.SharingPatch{DisplaySettings: settings}})
	return err
}
