package store

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// The errors of a setup link that cannot be created or used. A setup link creates the first organisation.
var (
	ErrSetUp     = errors.New("the setup was already completed: an organisation exists")
	ErrSetupLink = errors.New("the setup link is unknown, replaced or expired")
)

// setupToken marks setup links in the table login_links, where the token_id of a login link is that of its
// token. A setup link has no token, so it cannot be used to sign in.
var setupToken = uuid.Nil

// CreateSetupLink stores a link that can create the first organisation, and returns the secret of
// the link. Earlier setup links become invalid. CreateSetupLink returns ErrSetUp if an organisation
// exists.
func (s *Store) CreateSetupLink(ctx context.Context) (secret string, err error) {
	err = s.db.Tx(ctx, func(tx *gorm.DB) error {
		if err := db.SetupLock.Take(tx); err != nil {
			return err
		}
		if err := requireEmptyInstallation(tx); err != nil {
			return err
		}
		if err := tx.Exec("DELETE FROM login_links WHERE token_id = ?", setupToken).Error; err != nil {
			return err
		}
		secret, err = s.insertSecret(tx, "login_links", setupToken, LoginLinkLife)
		return err
	})
	return secret, err
}

// CheckSetupLink returns nil if a setup link can be used. If an organisation exists, it returns ErrSetUp. If the link is unknown, replaced by a
// newer link, or expired, it returns ErrSetupLink.
func (s *Store) CheckSetupLink(ctx context.Context, secret string) error {
	if err := requireEmptyInstallation(s.db.Read(ctx)); err != nil {
		return db.Translate(err)
	}
	hash := sha256.Sum256([]byte(secret))
	var links int64
	err := s.db.Read(ctx).Table("login_links").Where("hash = ? AND token_id = ? AND expires_at > ?", hash[:], setupToken, s.db.Now()).Count(&links).Error
	if err == nil && links == 0 {
		err = ErrSetupLink
	}
	return db.Translate(err)
}

// Setup is the result of SetUp: the new organisation, token and session.
type Setup struct {
	Organisation Organisation
	Secret       string // secret of the first token, which has all scopes and does not expire
	Session      string // secret of the new session; the session has the rights of the first token
}

// SetUp uses up a setup link to create the first organisation, a token and a session. The
// organisation belongs to the operator, has the tier premium and an active subscription. SetUp can
// return ErrSetUp and ErrSetupLink.
func (s *Store) SetUp(ctx context.Context, link, name string) (Setup, error) {
	var out Setup
	if err := CheckName("organisation", name); err != nil {
		return out, err
	}
	hash := sha256.Sum256([]byte(link))
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		if err := db.SetupLock.Take(tx); err != nil {
			return err
		}
		if err := requireEmptyInstallation(tx); err != nil {
			return err
		}
		// Of several callers with the same link, only one deletes the link and succeeds.
		used := tx.Exec("DELETE FROM login_links WHERE hash = ? AND token_id = ? AND expires_at > ?", hash[:], setupToken, s.db.Now())
		if used.Error == nil && used.RowsAffected == 0 {
			return ErrSetupLink
		}
		if used.Error != nil {
			return used.Error
		}
		var err error
		if out.Organisation, err = s.createOrganisation(tx, Organisation{Name: name, Tier: TierPremium, Subscription: SubscriptionActive, Operator: true}); err != nil {
			return err
		}
		row, secret, err := NewToken{Name: "First token", Scopes: Scopes}.toRow(out.Organisation.ID, s.db.Now())
		if err != nil {
			return err
		}
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		out.Secret = secret
		out.Session, err = s.insertSecret(tx, "sessions", row.ID, SessionLife)
		return err
	})
	return out, err
}

// requireEmptyInstallation returns ErrSetUp if an organisation exists.
func requireEmptyInstallation(q *gorm.DB) error {
	var ids []uuid.UUID
	if err := q.Table("organisations").Limit(1).Pluck("id", &ids).Error; err != nil {
		return err
	}
	if len(ids) > 0 {
		return ErrSetUp
	}
	return nil
}
