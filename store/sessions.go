package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

const (
	// SessionLife is how long a browser stays signed in. If the token of the session ends earlier, the session ends with it.
	SessionLife = 14 * db.Day
	// LoginLinkLife is how long a login link can be used.
	LoginLinkLife = 30 * time.Minute
)

// ErrLoginLink is the error for a login link that is unknown, used or expired, or whose token is no longer valid.
var ErrLoginLink = errors.New("the login link is unknown, used or expired")

// sessionSecretBytes is the number of random bytes of the secret of a session or login link.
const sessionSecretBytes = 32

// secretRow is a row of the tables sessions and login_links. Both store only the hash of a secret.
type secretRow struct {
	Hash      []byte
	TokenID   uuid.UUID
	CreatedAt db.Instant `gorm:"autoCreateTime:false"`
	ExpiresAt db.Instant
}

// CreateSession stores a new session and returns its secret. Requests with the session have the
// rights of the given token. The session lasts at most SessionLife.
func (s *Store) CreateSession(ctx context.Context, token uuid.UUID) (secret string, err error) {
	return s.createSecret(ctx, "sessions", token, SessionLife)
}

// AuthenticateSession returns the token and the organisation of the session with the given secret.
// It returns ErrTokenUnknown, ErrTokenExpired or ErrTokenRevoked if the session or its token is not
// valid.
func (s *Store) AuthenticateSession(ctx context.Context, secret string) (Identity, error) {
	return s.authenticateSecret(ctx, "sessions", secret)
}

// EndSession deletes the session with the given secret. It does nothing for an unknown session.
func (s *Store) EndSession(ctx context.Context, secret string) error {
	hash := sha256.Sum256([]byte(secret))
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Exec("DELETE FROM sessions WHERE hash = ?", hash[:]).Error
	})
}

// CreateLoginLink stores a login link for a token and returns the link's secret. The link can be used once within LoginLinkLife.
func (s *Store) CreateLoginLink(ctx context.Context, token uuid.UUID) (secret string, err error) {
	return s.createSecret(ctx, "login_links", token, LoginLinkLife)
}

// LoginLink returns the token and the organisation of a login link, and does not use up the link. It returns ErrLoginLink if the link
// cannot be used.
func (s *Store) LoginLink(ctx context.Context, secret string) (Identity, error) {
	id, err := s.authenticateSecret(ctx, "login_links", secret)
	return id, loginLinkError(err)
}

// UseLoginLink uses up a login link and returns the secret of a new session for the token of the
// link. It returns ErrLoginLink if the link cannot be used.
func (s *Store) UseLoginLink(ctx context.Context, secret string) (session string, err error) {
	id, err := s.LoginLink(ctx, secret)
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256([]byte(secret))
	err = s.db.Tx(ctx, func(tx *gorm.DB) error {
		// Lock the token before the link, as the deletion of an organisation does.
		if err := lockToken(tx, id.Token.ID); err != nil {
			return loginLinkError(err)
		}
		// Of several concurrent callers, only one deletes the link and gets a session.
		done := tx.Exec("DELETE FROM login_links WHERE hash = ?", hash[:])
		if done.Error == nil && done.RowsAffected == 0 {
			return ErrLoginLink
		}
		if done.Error != nil {
			return done.Error
		}
		session, err = s.insertSecret(tx, "sessions", id.Token.ID, SessionLife)
		return err
	})
	return session, err
}

// loginLinkError converts an error of authenticateSecret to ErrLoginLink if the link cannot be used. It returns any other error unchanged.
func loginLinkError(err error) error {
	if errors.Is(err, ErrTokenUnknown) || errors.Is(err, ErrTokenExpired) || errors.Is(err, ErrTokenRevoked) {
		return ErrLoginLink
	}
	return err
}

// createSecret inserts a row with a new secret into the table sessions or login_links and returns the secret.
func (s *Store) createSecret(ctx context.Context, table string, token uuid.UUID, life time.Duration) (secret string, err error) {
	err = s.db.Tx(ctx, func(tx *gorm.DB) error {
		secret, err = s.insertSecret(tx, table, token, life)
		return err
	})
	return secret, err
}

// insertSecret does the work of createSecret in the transaction tx. It returns ErrTokenUnknown if the token does not exist any more.
func (s *Store) insertSecret(tx *gorm.DB, table string, token uuid.UUID, life time.Duration) (string, error) {
	if token != setupToken {
		if err := lockToken(tx, token); err != nil {
			return "", err
		}
	}
	random := make([]byte, sessionSecretBytes)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	secret := base64.RawURLEncoding.EncodeToString(random)
	hash := sha256.Sum256([]byte(secret))
	now := s.db.Now()
	return secret, tx.Table(table).Create(&secretRow{Hash: hash[:], TokenID: token, CreatedAt: now, ExpiresAt: now.Add(life)}).Error
}

// authenticateSecret returns the token and organisation of a secret in the table sessions or
// login_links. It returns ErrTokenUnknown, ErrTokenExpired or ErrTokenRevoked if the secret or
// token is not valid.
func (s *Store) authenticateSecret(ctx context.Context, table, secret string) (Identity, error) {
	if decoded, err := base64.RawURLEncoding.DecodeString(secret); err != nil || len(decoded) != sessionSecretBytes {
		return Identity{}, ErrTokenUnknown
	}
	hash := sha256.Sum256([]byte(secret))
	var found secretRow
	if err := s.db.Read(ctx).Table(table).Where("hash = ?", hash[:]).Limit(1).Find(&found).Error; err != nil {
		return Identity{}, db.Translate(err)
	}
	if found.TokenID == uuid.Nil {
		return Identity{}, ErrTokenUnknown
	}
	if found.ExpiresAt <= s.db.Now() {
		return Identity{}, ErrTokenExpired
	}
	var row tokenRow
	if err := s.db.Read(ctx).Where("id = ?", found.TokenID).Limit(1).Find(&row).Error; err != nil {
		return Identity{}, db.Translate(err)
	}
	return s.toIdentity(ctx, row)
}
