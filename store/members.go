package store

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// This file adds videos and accounts to collections and removes them. A collection also contains all videos of its accounts, and all videos
// with one of its hashtags: see labels.go.

// requireCollection returns ErrNotFound if the organisation has no collection with the given id.
func (o *Org) requireCollection(ctx context.Context, id uuid.UUID) error {
	var n int64
	if err := o.scopedQuery(ctx, "collections").Where("collections.id = ?", id).Count(&n).Error; err != nil {
		return db.Translate(err)
	}
	if n == 0 {
		return db.NotFound("collection", id.String())
	}
	return nil
}

// AddVideos adds videos to a collection and returns how many were not direct members before. countsFrom is the first day whose gains count in the
// collection, also for videos that are direct members already. If it is nil, new members count from now on, and the others keep their time. If the
// collection or a video is unknown, AddVideos changes nothing and returns a *NotFoundError.
func (o *Org) AddVideos(ctx context.Context, collection uuid.UUID, videos []uuid.UUID, countsFrom *db.Date) (int64, error) {
	return o.addKnown(ctx, collection, "video", videos, countsFrom)
}

// AddAccounts adds accounts, with all their videos, to a collection. It returns how many accounts it added. If the collection or an
// account is unknown, it adds nothing and returns a *NotFoundError.
func (o *Org) AddAccounts(ctx context.Context, collection uuid.UUID, accounts []uuid.UUID) (int64, error) {
	return o.addKnown(ctx, collection, "account", accounts, nil)
}

// addKnown adds members to a collection in a new transaction. It returns a *NotFoundError if the collection or a member is unknown. For kind,
// countsFrom and the result, see addMembers.
func (o *Org) addKnown(ctx context.Context, collection uuid.UUID, kind string, ids []uuid.UUID, countsFrom *db.Date) (added int64, err error) {
	err = o.changeData(ctx, func(t OrgTx) error {
		if _, err := t.collectionForUpdate(collection, nil); err != nil {
			return err
		}
		if err := t.requireRows(kind, ids); err != nil {
			return err
		}
		added, err = t.addMembers(kind, []uuid.UUID{collection}, ids, countsFrom)
		return err
	})
	return added, err
}

// addMembers adds the videos or accounts with the given ids to each of the collections, and returns how many memberships it added. kind is "video" or
// "account". Unknown ids are left out. The transaction must have raised the version of the labels, with RaiseVersions. Callers need not change counters
// or record events: members are not counted, and adding them causes no event.
//
// If countsFrom is nil, new memberships get the present time as added_at, and existing ones keep theirs. Otherwise, new and existing memberships get the
// last moment of the day before countsFrom. So the gain of the day countsFrom begins with the counts at the end of the day before it.
//
// All requests that add members use this function. Only Seed of package backfill writes memberships in bulk, with times of its own, and package ingest
// moves the memberships of an account whose record is merged with another one.
func (t OrgTx) addMembers(kind string, collections, ids []uuid.UUID, countsFrom *db.Date) (added int64, err error) {
	if len(collections) == 0 || len(ids) == 0 {
		return 0, nil
	}
	addedAt := t.Now
	if countsFrom != nil {
		addedAt = db.InstantOf(countsFrom.Time()) - 1
		// The INSERT could also update existing rows, but would then count them as added.
		if err := t.Tx.Exec(strings.ReplaceAll(`UPDATE collection_{kind}s SET added_at = ? WHERE organisation_id = ? AND collection_id IN ? AND {kind}_id IN ?`,
			"{kind}", kind), addedAt, t.id, collections, ids).Error; err != nil {
			return 0, err
		}
	}
	// The rows are locked in the order of their keys. The tables are collection_videos or collection_accounts, and videos or accounts.
	r := t.Tx.Exec(strings.ReplaceAll(`INSERT INTO collection_{kind}s (organisation_id, collection_id, {kind}_id, added_at)
SELECT c.organisation_id, c.id, m.id, CAST(? AS bigint) FROM collections c JOIN {kind}s m ON m.organisation_id = c.organisation_id
 WHERE c.organisation_id = ? AND c.id IN ? AND m.id IN ? ORDER BY c.id, m.id
ON CONFLICT (organisation_id, collection_id, {kind}_id) DO NOTHING`, "{kind}", kind), addedAt, t.id, collections, ids)
	return r.RowsAffected, r.Error
}

// requireRows returns a *NotFoundError if the organisation lacks any of the given videos, accounts or collections. kind is "video", "account" or
// "collection".
func (t OrgTx) requireRows(kind string, ids []uuid.UUID) error {
	ids, table := db.Distinct(ids), kind+"s"
	if len(ids) == 0 {
		return nil
	}
	var known []uuid.UUID
	if err := db.Scoped(t.Tx, table, t.id).Where(table+".id IN ?", ids).Pluck("id", &known).Error; err != nil {
		return err
	}
	var missing []string
	for _, id := range ids {
		if !slices.Contains(known, id) {
			missing = append(missing, id.String())
		}
	}
	if len(missing) > 0 {
		return db.NotFound(kind, missing...)
	}
	return nil
}

// TimesOfAdding returns when the videos or accounts with the given ids were added to a collection. kind is "video" or "account". The map lacks
// ids that were not added themselves. It also lacks the ids of videos that are in the collection only through their account or a hashtag.
func (o *Org) TimesOfAdding(ctx context.Context, collection uuid.UUID, kind string, ids []uuid.UUID) (map[uuid.UUID]db.Instant, error) {
	var rows []struct {
		ID      uuid.UUID
		AddedAt db.Instant
	}
	table := "collection_" + kind + "s"
	err := o.scopedQuery(ctx, table).Where("collection_id = ? AND "+kind+"_id IN ?", collection, ids).Select(kind + "_id AS id, added_at").Scan(&rows).Error
	times := make(map[uuid.UUID]db.Instant, len(rows))
	for _, r := range rows {
		times[r.ID] = r.AddedAt
	}
	return times, db.Translate(err)
}

// RemoveVideos removes videos from a collection and returns how many were direct members. It
// returns ErrNotFound for an unknown collection. A video can remain through its account or a
// hashtag.
func (o *Org) RemoveVideos(ctx context.Context, collection uuid.UUID, videos []uuid.UUID) (int64, error) {
	return o.removeMembers(ctx, collection, "DELETE FROM collection_videos WHERE organisation_id = ? AND collection_id = ? AND video_id IN ?", videos)
}

// RemoveAccounts removes accounts from a collection and returns how many were in it. It returns ErrNotFound for an unknown collection, and
// ignores unknown accounts.
func (o *Org) RemoveAccounts(ctx context.Context, collection uuid.UUID, accounts []uuid.UUID) (int64, error) {
	return o.removeMembers(ctx, collection, "DELETE FROM collection_accounts WHERE organisation_id = ? AND collection_id = ? AND account_id IN ?", accounts)
}

// removeMembers runs a DELETE statement for the members of a collection with the given ids. It returns the number of deleted rows.
func (o *Org) removeMembers(ctx context.Context, collection uuid.UUID, statement string, ids []uuid.UUID) (removed int64, err error) {
	err = o.changeData(ctx, func(t OrgTx) error {
		if _, err := t.collectionForUpdate(collection, nil); err != nil {
			return err
		}
		r := t.Tx.Exec(statement, o.id, collection, ids)
		removed = r.RowsAffected
		return r.Error
	})
	return removed, err
}
