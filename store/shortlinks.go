package store

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// shortLink is a row of short_links: a short link and the link to which it redirects. All
// organisations share these rows.
type shortLink struct {
	Platform   link.Platform `gorm:"primaryKey"`
	ShortLink  string        `gorm:"primaryKey;column:code"` // the canonical form of the short link
	Target     string        // the canonical form of the link to which the short link redirects
	ResolvedAt db.Instant
}

// ShortLinks returns the link to which each short link redirects. It includes only redirects that
// were resolved in the last 30 days. The keys are the canonical short links.
func (s *Store) ShortLinks(ctx context.Context, links []link.Link) (map[string]link.Link, error) {
	if len(links) == 0 {
		return nil, nil //nolint:nilnil // no short links were given, so the result is empty
	}
	canonical, requested := make([]string, len(links)), map[string]bool{}
	for i, l := range links {
		canonical[i] = l.Canonical
		requested[string(l.Platform)+l.Canonical] = true
	}
	var rows []shortLink
	err := s.db.Read(ctx).Where("code IN ? AND resolved_at > ?", canonical, s.db.Now().Add(-db.ShortLinkLife)).Find(&rows).Error
	if err != nil {
		return nil, db.Translate(err)
	}
	resolved := make(map[string]link.Link, len(rows))
	for _, r := range rows {
		target, err := link.Parse(r.Target)
		if err == nil && requested[string(r.Platform)+r.ShortLink] {
			resolved[r.ShortLink] = target
		}
	}
	return resolved, nil
}

// SaveShortLinks stores the links to which short links redirect. The keys of the map are the canonical forms of the short links.
func (s *Store) SaveShortLinks(ctx context.Context, resolved map[string]link.Link) error {
	rows := make([]shortLink, 0, len(resolved))
	for from, target := range resolved {
		rows = append(rows, shortLink{Platform: target.Platform, ShortLink: from, Target: target.Canonical, ResolvedAt: s.db.Now()})
	}
	if len(rows) == 0 {
		return nil
	}
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "platform"}, {Name: "code"}},
			DoUpdates: clause.AssignmentColumns([]string{"target", "resolved_at"}),
		}).Create(&rows).Error
	})
}
