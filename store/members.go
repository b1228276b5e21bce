package store

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// This file adds videos and accounts to collections and removes them. A collection also contains all videos of its accounts, and all videos
// with one of its hashtags: see labels.go.

// collectionAccount is a row of collection_accounts: an account that was added to a collection.
type collectionAccount struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	CollectionID   uuid.UUID `gorm:"primaryKey"`
	AccountID      uuid.UUID `gorm:"primaryKey"`
	AddedAt        db.Instant
}

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

// AddVideos adds videos to a collection and returns how many were not direct members before. If the collection or a video is unknown, it
// adds nothing and returns a *NotFoundError.
func (o *Org) AddVideos(ctx context.Context, collection uuid.UUID, videos []uuid.UUID) (int64, error) {
	return o.addMembers(ctx, collection, "videos", "video", videos, func(tx *gorm.DB, ids []uuid.UUID, now db.Instant) *gorm.DB {
		rows := make([]collectionVideo, len(ids))
		for i, id := range ids {
			rows[i] = collectionVideo{o.id, collection, id, now}
		}
		return tx.Clauses(db.OnConflictDoNothing("organisation_id", "collection_id", "video_id")).Create(&rows)
	})
}

// AddAccounts adds accounts, with all their videos, to a collection. It returns how many accounts it added. If the collection or an
// account is unknown, it adds nothing and returns a *NotFoundError.
func (o *Org) AddAccounts(ctx context.Context, collection uuid.UUID, accounts []uuid.UUID) (int64, error) {
	return o.addMembers(ctx, collection, "accounts", "account", accounts, func(tx *gorm.DB, ids []uuid.UUID, now db.Instant) *gorm.DB {
		rows := make([]collectionAccount, len(ids))
		for i, id := range ids {
			rows[i] = collectionAccount{o.id, collection, id, now}
		}
		return tx.Clauses(db.OnConflictDoNothing("organisation_id", "collection_id", "account_id")).Create(&rows)
	})
}

// addMembers calls the function insert if the collection exists and all ids are in the given table. `kind`
// names their kind in errors, such as "video".
func (o *Org) addMembers(ctx context.Context, collection uuid.UUID, table, kind string, ids []uuid.UUID, insert func(*gorm.DB, []uuid.UUID, db.Instant) *gorm.DB) (added int64, err error) {
	ids = db.Distinct(ids)
	err = o.changeData(ctx, func(tx *gorm.DB) error {
		if _, err := o.collectionForUpdate(tx, collection, nil); err != nil {
			return err
		}
		var known []uuid.UUID
		if err := db.Scoped(tx, table, o.id).Where(table+".id IN ?", ids).Pluck("id", &known).Error; err != nil {
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
		r := insert(tx, ids, o.s.db.Now())
		added = r.RowsAffected
		return r.Error
	})
	return added, err
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
	err = o.changeData(ctx, func(tx *gorm.DB) error {
		if _, err := o.collectionForUpdate(tx, collection, nil); err != nil {
			return err
		}
		r := tx.Exec(statement, o.id, collection, ids)
		removed = r.RowsAffected
		return r.Error
	})
	return removed, err
}
