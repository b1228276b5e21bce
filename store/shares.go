package store

import (
	"context"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// sharePage is a row of share_pages: the collection to which a hash belongs.
type sharePage struct {
	Hash           string `gorm:"primaryKey"`
	OrganisationID uuid.UUID
	CollectionID   uuid.UUID
}

// Share is a public or protected collection, and its organisation.
type Share struct {
	Organisation Organisation
	Collection   Collection // the collection, without hashtags and counts
}

// Share returns the public or protected collection whose share page has the given hash. It returns ErrNotFound for an unknown hash and for
// the hash of a private collection. Both cases run the same statements, so that their durations do not differ.
func (s *Store) Share(ctx context.Context, hash string) (Share, error) {
	var page sharePage
	if err := s.db.Read(ctx).Where("hash = ?", hash).Limit(1).Find(&page).Error; err != nil {
		return Share{}, db.Translate(err)
	}
	var org Organisation
	if err := s.db.Read(ctx).Where("id = ?", page.OrganisationID).Limit(1).Find(&org).Error; err != nil {
		return Share{}, db.Translate(err)
	}
	var found []Collection
	if err := s.Org(page.OrganisationID).q(ctx, "collections").Where("collections.id = ?", page.CollectionID).Limit(1).Find(&found).Error; err != nil {
		return Share{}, db.Translate(err)
	}
	if len(found) == 0 || found[0].Access == AccessPrivate {
		return Share{}, db.NotFound("share page", hash)
	}
	return Share{Organisation: org, Collection: found[0]}, nil
}
