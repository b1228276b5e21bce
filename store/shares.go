package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// Access says who can open a share page.
type Access string

// The access levels of collections and reports.
const (
	AccessPrivate   Access = "private"   // there is no share page
	AccessPublic    Access = "public"    // everyone who has the URL can open the share page
	AccessProtected Access = "protected" // the share page needs a password
)

// hashLength is the number of random characters in the address of a share page: the length of Sharing.Hash.
const hashLength = 14

// Sharing says who can open the share page of a collection or report, until when, and what the page shows.
type Sharing struct {
	Access          Access
	PasswordHash    *string
	Hash            *string     // random part of the URL of the share page; set when the access first becomes public or protected
	ShareExpiresAt  *db.Instant // when the share page closes; nil if it stays open
	DisplaySettings *string     // what the share page shows, as a JSON object; nil if no settings are stored
}

// SharingPatch is a change to a Sharing. Fields that are nil stay unchanged.
type SharingPatch struct {
	Access          *Access
	PasswordHash    *string             // the password hash, as HashPassword returns it
	ShareExpiry     *Change[db.Instant] // when the share page closes; Change.To is nil if the page stays open
	DisplaySettings json.RawMessage     // a JSON object, or null to remove the settings
}

// Change is a change of a value that can be null. If To is nil, the value becomes null.
type Change[T any] struct{ To *T }

// change applies a patch at the time now. When the access first becomes public or protected, it adds a hash and stores the page with this hash.
// If it opens a closed page again, it raises the page's Reopened. It returns ErrPasswordRequired if a protected page would have no password. The
// caller must store the changed Sharing.
func (s *Sharing) change(tx *gorm.DB, p SharingPatch, page sharePage, now db.Instant) error {
	wasClosed := s.Hash != nil && s.isClosed(now)
	db.Assign(&s.Access, p.Access)
	db.AssignPointer(&s.PasswordHash, p.PasswordHash)
	if p.ShareExpiry != nil {
		s.ShareExpiresAt = p.ShareExpiry.To
	}
	if p.DisplaySettings != nil {
		s.DisplaySettings = nil
		if text := string(p.DisplaySettings); text != "null" {
			s.DisplaySettings = &text
		}
	}
	if s.Access == AccessProtected && s.PasswordHash == nil {
		return ErrPasswordRequired
	}
	if wasClosed && !s.isClosed(now) {
		return tx.Exec("UPDATE share_pages SET reopened = reopened + 1 WHERE hash = ?", *s.Hash).Error
	}
	return s.assignHash(tx, page)
}

// assignHash sets Hash to a new random hash and stores the page with this hash, if Hash is nil and the access is public or protected. It never changes an
// existing hash.
func (s *Sharing) assignHash(tx *gorm.DB, page sharePage) error {
	if s.Hash != nil || s.Access == AccessPrivate {
		return nil
	}
	hash, err := randomBase62(hashLength)
	if err != nil {
		return err
	}
	s.Hash, page.Hash = &hash, hash
	return tx.Create(&page).Error
}

// isClosed returns true if the share page cannot be opened at the given time, because it is private or has expired.
func (s *Sharing) isClosed(now db.Instant) bool {
	return s.Access == AccessPrivate || s.ShareExpiresAt != nil && *s.ShareExpiresAt <= now
}

// sharePage is a row of share_pages: the collection or report to which the hash of a share page belongs.
type sharePage struct {
	Hash           string `gorm:"primaryKey"`
	OrganisationID uuid.UUID
	CollectionID   uuid.UUID
	ReportID       *uuid.UUID  // the report to which the hash belongs; nil if the hash belongs to the collection itself
	OpenedAt       *db.Instant `gorm:"->"` // when a visitor last opened the page; nil if the page was never opened
	Reopened       int64       `gorm:"->"` // how often the page was opened again after it was closed
}

// ShareKind says what a share page shows.
type ShareKind string

// The kinds of share pages.
const (
	ShareCollection ShareKind = "collection" // the current numbers of a collection
	ShareReport     ShareKind = "report"     // a report, whose numbers never change
)

// Share is what a share page shows: a public or protected collection or report, and its organisation.
type Share struct {
	Organisation Organisation
	Kind         ShareKind
	Sharing                  // the sharing of the collection or report
	Collection   Collection  // the collection, without hashtags and counts, if Kind is ShareCollection
	Report       Report      // the report, without its document, if Kind is ShareReport
	OpenedAt     *db.Instant // when a visitor last opened the share page, accurate to ShareVisitInterval; nil if the page was never opened
	Reopened     int64       // how often the share page was opened again after it was closed
}

// ItemID returns the id of the shared collection or report.
func (s *Share) ItemID() uuid.UUID {
	if s.Kind == ShareReport {
		return s.Report.ID
	}
	return s.Collection.ID
}

// Share returns the collection or report whose share page has the given hash. It returns ErrNotFound if the hash is unknown or
// belongs to the other kind, the collection or report is private, the page has expired, or the deletion of its organisation has begun.
func (s *Store) Share(ctx context.Context, kind ShareKind, hash string) (Share, error) {
	// The same statements run for an unknown hash and for a private collection or report, so the duration does not reveal
	// whether a private collection or report exists.
	var page sharePage
	if err := s.db.Read(ctx).Where("hash = ?", hash).Limit(1).Find(&page).Error; err != nil {
		return Share{}, db.Translate(err)
	}
	var org Organisation
	if err := s.db.Read(ctx).Where("id = ?", page.OrganisationID).Limit(1).Find(&org).Error; err != nil {
		return Share{}, db.Translate(err)
	}
	share := Share{Organisation: org, Kind: kind, OpenedAt: page.OpenedAt, Reopened: page.Reopened}
	found, err := s.loadSharedItem(ctx, &share, page)
	if err != nil {
		return Share{}, err
	}
	if !found || org.DeletingSince != nil || share.isClosed(s.db.Now()) {
		return Share{}, db.NotFound("share page", hash)
	}
	return share, nil
}

// loadSharedItem reads the collection or report of a page into share. It returns false if the page is not of the kind share.Kind, or the
// collection or report does not exist.
func (s *Store) loadSharedItem(ctx context.Context, share *Share, page sharePage) (found bool, err error) {
	o := s.Org(page.OrganisationID)
	if share.Kind == ShareReport {
		var id uuid.UUID
		db.Assign(&id, page.ReportID)
		share.Report, err = o.Report(ctx, id)
		share.Sharing = share.Report.Sharing
		if errors.Is(err, db.ErrNotFound) {
			return false, nil
		}
		return true, err
	}
	var collections []Collection
	if err := o.scopedQuery(ctx, "collections").Where("collections.id = ?", page.CollectionID).Limit(1).Find(&collections).Error; err != nil {
		return false, db.Translate(err)
	}
	if len(collections) == 0 || page.ReportID != nil {
		return false, nil
	}
	share.Collection, share.Sharing = collections[0], collections[0].Sharing
	return true, nil
}

// ShareVisitInterval is the accuracy of Org.LastShareVisit. If many visitors open a share page, the time is written at most once in this
// interval.
const ShareVisitInterval = 10 * time.Minute

// SaveShareVisit stores that a visitor opens a share page now. It writes nothing if share.OpenedAt is less than ShareVisitInterval ago.
func (s *Store) SaveShareVisit(ctx context.Context, share Share) error {
	now := s.db.Now()
	if share.OpenedAt != nil && now.Sub(*share.OpenedAt) < ShareVisitInterval {
		return nil
	}
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE share_pages SET opened_at = ? WHERE hash = ?", now, *share.Hash).Error
	})
}

// LastShareVisit returns when a visitor last opened the share page with the given hash. The time can be too early by up to ShareVisitInterval. The
// time is nil if the organisation has no such page, or the page was never opened.
func (o *Org) LastShareVisit(ctx context.Context, hash string) (*db.Instant, error) {
	var page sharePage
	err := o.s.db.Read(ctx).Where("hash = ?", hash).Limit(1).Find(&page).Error
	if err != nil || page.OrganisationID != o.id {
		return nil, db.Translate(err)
	}
	return page.OpenedAt, nil
}
