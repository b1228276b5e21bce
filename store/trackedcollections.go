package store

import (
	"slices"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// collectionIDs returns the ids of the requested collections. It creates a root collection for each
// unknown name, and returns a *NotFoundError for an unknown id.
func (t OrgTx) collectionIDs(r collectionRefs) ([]uuid.UUID, error) {
	ids := db.Distinct(r.IDs)
	if err := t.requireRows("collection", ids); err != nil {
		return nil, err
	}
	named, err := t.collectionsByName(r)
	return append(ids, named...), err
}

// collectionRefs says which collections a request names. Each is named by its id, or by its name if it is a root collection.
type collectionRefs struct {
	IDs       []uuid.UUID
	Names     []string
	CreatedBy uuid.UUID // id of the API token that is stored as the creator of new collections
}

func (r collectionRefs) isEmpty() bool { return len(r.IDs)+len(r.Names) == 0 }

// collectionsByName returns the ids of the root collections with the requested names. It creates the collections that do not exist.
func (t OrgTx) collectionsByName(r collectionRefs) ([]uuid.UUID, error) {
	names := slices.Compact(slices.Sorted(slices.Values(r.Names)))
	if len(names) == 0 {
		return nil, nil
	}
	// The database does not forbid two collections with the same name. This transaction has locked the organisation, so no concurrent
	// request can create a collection with one of the names.
	var found []Collection
	err := db.Scoped(t.Tx, "collections", t.id).Where("collections.parent_id IS NULL AND collections.name IN ?", names).Order("created_at, id").Find(&found).Error
	if err != nil {
		return nil, err
	}
	var ids []uuid.UUID
	var fresh []Collection
	for _, name := range names {
		i := slices.IndexFunc(found, func(c Collection) bool { return c.Name == name })
		if i >= 0 {
			ids = append(ids, found[i].ID)
			continue
		}
		c := Collection{OrganisationID: t.id, ID: db.NewID(), Name: name, Sharing: Sharing{Access: AccessPrivate}, CreatedBy: r.CreatedBy,
			CreatedAt: t.Now, UpdatedAt: t.Now}
		ids, fresh = append(ids, c.ID), append(fresh, c)
	}
	if len(fresh) == 0 {
		return ids, nil
	}
	if err := CheckCollectionCount(t.Org, t.Tx, len(fresh)); err != nil {
		return nil, err
	}
	return ids, t.Tx.Create(&fresh).Error
}
