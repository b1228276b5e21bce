package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
)

// Scope is a permission of an API token.
type Scope string

// The scopes of API tokens. Each operation of the API requires one of them.
const (
	ScopeRead  Scope = "read"
	ScopeWrite Scope = "write"
	ScopeAdmin Scope = "admin" // allows operations that manage tokens and webhooks
)

// Scopes lists every scope.
var Scopes = []Scope{ScopeRead, ScopeWrite, ScopeAdmin}

// MaxTokens is how many tokens an organisation can have before Org.CreateToken refuses to make another one. Expired and revoked tokens
// count until they are deleted.
const MaxTokens = 1000

// ParseScopes parses a comma-separated list of scopes. It returns the scopes sorted and without duplicates. The list must not be empty.
func ParseScopes(s string) ([]Scope, error) {
	var scopes []Scope
	for part := range strings.SplitSeq(s, ",") {
		v := Scope(strings.TrimSpace(part))
		if !slices.Contains(Scopes, v) {
			return nil, fmt.Errorf("scope %q is not one of read, write, admin", part)
		}
		if !slices.Contains(scopes, v) {
			scopes = append(scopes, v)
		}
	}
	slices.Sort(scopes)
	return scopes, nil
}

// joinScopes returns the comma-separated list that ParseScopes parses.
func joinScopes(scopes []Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ",")
}

// Token is an API token without its secret. The store keeps only a hash of the secret.
type Token struct {
	ID             uuid.UUID
	OrganisationID uuid.UUID
	Name           string
	Scopes         []Scope
	CreatedAt      db.Instant
	ExpiresAt      *db.Instant // nil if the token does not expire
	RevokedAt      *db.Instant // nil if the token is not revoked
	LastUsedAt     *db.Instant // time of the last use, accurate to one minute; nil if the token was never used
}

// HasScope returns true if the token has the given scope.
func (t Token) HasScope(s Scope) bool { return slices.Contains(t.Scopes, s) }

// TokenState says whether a token can be used.
type TokenState string

// The states of a token. A revoked token is TokenRevoked, even if it has also expired.
const (
	TokenValid   TokenState = "valid"
	TokenExpired TokenState = "expired"
	TokenRevoked TokenState = "revoked"
)

// State returns the state of the token at the time now. A token that was revoked and has expired counts as revoked.
func (t Token) State(now db.Instant) TokenState {
	switch {
	case t.RevokedAt != nil:
		return TokenRevoked
	case t.ExpiresAt != nil && *t.ExpiresAt <= now:
		return TokenExpired
	}
	return TokenValid
}

// Identity is an API token and the organisation to which it belongs.
type Identity struct {
	Organisation Organisation
	Token        Token
}

// A token consists of "rt_", 40 random base-62 characters and a checksum. The checksum reveals
// mistyped tokens, and lets secret scanners recognise tokens.
const (
	tokenPrefix   = "rt_"
	tokenRandom   = 40
	tokenChecksum = 6
	base62        = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// WellFormedToken returns true if a text has the form and the checksum of a token. A well-formed token may still be unknown.
func WellFormedToken(s string) bool {
	if len(s) != len(tokenPrefix)+tokenRandom+tokenChecksum || !strings.HasPrefix(s, tokenPrefix) {
		return false
	}
	body := s[:len(tokenPrefix)+tokenRandom]
	return s[len(body):] == checksumOf(body)
}

// checksumOf returns the CRC-32 of body in base 62. The body is a token without its checksum.
func checksumOf(body string) string {
	n := crc32.ChecksumIEEE([]byte(body))
	sum := make([]byte, tokenChecksum)
	for i := len(sum) - 1; i >= 0; i-- {
		sum[i], n = base62[n%62], n/62
	}
	return string(sum)
}

// randomBase62 returns n random base-62 characters. Each of the 62 characters is equally likely.
func randomBase62(n int) (string, error) {
	out := make([]byte, n)
	for i := range out {
		k, err := rand.Int(rand.Reader, big.NewInt(int64(len(base62))))
		if err != nil {
			return "", err
		}
		out[i] = base62[k.Int64()]
	}
	return string(out), nil
}

// tokenRow is a row of api_tokens. Queries read LastUsedAt from the table token_uses.
type tokenRow struct {
	ID             uuid.UUID `gorm:"primaryKey"`
	OrganisationID uuid.UUID
	Name           string
	Hash           []byte
	Scopes         string
	CreatedAt      db.Instant `gorm:"autoCreateTime:false"`
	ExpiresAt      *db.Instant
	RevokedAt      *db.Instant
	LastUsedAt     *db.Instant `gorm:"->"`
}

func (tokenRow) TableName() string { return "api_tokens" }

// toToken converts the row to a Token.
func (r tokenRow) toToken() Token {
	scopes, _ := ParseScopes(r.Scopes) // CreateToken has checked the scopes, so there is no error
	return Token{ID: r.ID, OrganisationID: r.OrganisationID, Name: r.Name, Scopes: scopes,
		CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, RevokedAt: r.RevokedAt, LastUsedAt: r.LastUsedAt}
}

// NewToken has the values with which CreateToken creates a token.
type NewToken struct {
	ID       uuid.UUID     // id of the new token; if it is the zero id, the store chooses an id
	Name     string        // 1 to 100 characters; white space around it is removed
	Scopes   []Scope       // scopes of the token, at least one
	Validity time.Duration // 0 if the token does not expire
}

// toRow returns the row with which the token is inserted for an organisation, and the secret of the token. It returns an error if a field is not
// valid.
func (n NewToken) toRow(org uuid.UUID, now db.Instant) (tokenRow, string, error) {
	if err := CheckName("token", n.Name); err != nil {
		return tokenRow{}, "", err
	}
	if len(n.Scopes) == 0 {
		return tokenRow{}, "", errors.New("a token needs at least one of the scopes read, write and admin")
	}
	scopes, err := ParseScopes(joinScopes(n.Scopes)) // sort the scopes and remove duplicates
	if err != nil {
		return tokenRow{}, "", err
	}
	if n.Validity < 0 {
		return tokenRow{}, "", fmt.Errorf("a token cannot be valid for %s: the duration must not be negative", n.Validity)
	}
	random, err := randomBase62(tokenRandom)
	if err != nil {
		return tokenRow{}, "", err
	}
	secret := tokenPrefix + random
	secret += checksumOf(secret)
	hash := sha256.Sum256([]byte(secret))
	row := tokenRow{ID: n.ID, OrganisationID: org, Name: trimName(n.Name), Hash: hash[:], Scopes: joinScopes(scopes), CreatedAt: now}
	if n.ID == uuid.Nil {
		row.ID = db.NewID()
	}
	if n.Validity > 0 {
		expires := now.Add(n.Validity)
		row.ExpiresAt = &expires
	}
	return row, secret, nil
}

// CreateToken returns a new token and its secret. If validity is 0, the token never expires. The
// error is ErrNotFound for an unknown organisation, and ErrOrganisationDeleted for one whose deletion has begun.
func (s *Store) CreateToken(ctx context.Context, org uuid.UUID, name string, scopes []Scope, validity time.Duration) (Token, string, error) {
	row, secret, err := NewToken{Name: name, Scopes: scopes, Validity: validity}.toRow(org, s.db.Now())
	if err != nil {
		return Token{}, "", err
	}
	switch o, err := s.Organisation(ctx, org); {
	case err != nil:
		return Token{}, "", err
	case o.DeletingSince != nil:
		return Token{}, "", ErrOrganisationDeleted
	}
	// MaxTokens does not apply, because only the operator of the installation can call this method.
	err = s.db.Tx(ctx, func(tx *gorm.DB) error { return tx.Create(&row).Error })
	return row.toToken(), secret, deletedOrganisationError(err)
}

// CreateToken returns a new token and its secret, which cannot be read again later. It returns
// *LimitError if the organisation has MaxTokens tokens.
func (o *Org) CreateToken(ctx context.Context, n NewToken) (Token, string, error) {
	row, secret, err := n.toRow(o.id, o.s.db.Now())
	if err != nil {
		return Token{}, "", err
	}
	err = o.changeData(ctx, func(t OrgTx) error {
		// If this request is a repetition, an earlier attempt may have created the token. The caller never
		// received that token's secret, so the token gets a new secret.
		repeated := db.Scoped(t.Tx, "api_tokens", o.id).Where("id = ?", row.ID).Update("hash", row.Hash)
		if repeated.Error != nil {
			return repeated.Error
		}
		if repeated.RowsAffected > 0 {
			return db.Scoped(t.Tx, "api_tokens", o.id).Where("id = ?", row.ID).Take(&row).Error // the token keeps its creation and expiry times
		}
		var have int64
		if err := db.Scoped(t.Tx, "api_tokens", o.id).Count(&have).Error; err != nil {
			return err
		}
		if have >= MaxTokens {
			return limitError(LimitTokens, "the organisation has %d tokens, and at most %[1]d are allowed. "+
				"Expired and revoked tokens also count. They are deleted 90 days after they expired or were revoked", MaxTokens)
		}
		return t.Tx.Create(&row).Error
	})
	return row.toToken(), secret, err
}

// Tokens returns an organisation's tokens, the oldest first, including expired and revoked tokens. It returns ErrNotFound for an unknown
// organisation.
func (s *Store) Tokens(ctx context.Context, org uuid.UUID) ([]Token, error) {
	if _, err := s.Organisation(ctx, org); err != nil {
		return nil, err
	}
	var rows []tokenRow
	err := s.db.Read(ctx).Table("api_tokens").
		Select("api_tokens.*, u.last_used_at").Joins("LEFT JOIN token_uses u ON u.token_id = api_tokens.id").
		Where("organisation_id = ?", org).Order("created_at, id").Find(&rows).Error
	tokens := make([]Token, len(rows))
	for i, r := range rows {
		tokens[i] = r.toToken()
	}
	return tokens, db.Translate(err)
}

// Tokens returns the organisation's tokens, the newest first, including expired and revoked tokens.
func (o *Org) Tokens(ctx context.Context) ([]Token, error) {
	tokens, err := o.s.Tokens(ctx, o.id)
	slices.Reverse(tokens)
	return tokens, err
}

// RevokeToken revokes a token of the organisation permanently. It returns ErrNotFound for an unknown token, and changes nothing if the
// token is revoked already.
func (o *Org) RevokeToken(ctx context.Context, id uuid.UUID) error {
	return o.s.revokeToken(ctx, id, func(tx *gorm.DB) *gorm.DB { return tx.Where("organisation_id = ?", o.id) })
}

// RevokeToken revokes a token of any organisation permanently. It is for operators. It returns ErrNotFound for an unknown token, and
// changes nothing if the token is revoked already.
func (s *Store) RevokeToken(ctx context.Context, id uuid.UUID) error {
	return s.revokeToken(ctx, id, func(tx *gorm.DB) *gorm.DB { return tx })
}

// revokeToken revokes the token with the given id. The function addCondition limits which tokens can be revoked. revokeToken returns ErrNotFound
// if there is no such token.
func (s *Store) revokeToken(ctx context.Context, id uuid.UUID, addCondition func(*gorm.DB) *gorm.DB) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		r := addCondition(tx.Model(&tokenRow{})).Where("id = ?", id).Update("revoked_at", gorm.Expr("COALESCE(revoked_at, ?)", s.db.Now()))
		if r.Error == nil && r.RowsAffected == 0 {
			return db.NotFound("token", id.String())
		}
		return r.Error
	})
}

// Authenticate returns the token with the given secret, and the token's organisation. An invalid
// token gives ErrTokenUnknown, ErrTokenExpired or ErrTokenRevoked.
func (s *Store) Authenticate(ctx context.Context, token string) (Identity, error) {
	if !WellFormedToken(token) {
		return Identity{}, ErrTokenUnknown
	}
	// A lookup by hash takes equally long, however many characters of a guessed secret are right.
	hash := sha256.Sum256([]byte(token))
	var row tokenRow
	if err := s.db.Read(ctx).Where("hash = ?", hash[:]).Limit(1).Find(&row).Error; err != nil {
		return Identity{}, db.Translate(err)
	}
	return s.toIdentity(ctx, row)
}

// toIdentity converts the row of a token to the token and its organisation. It returns
// ErrTokenUnknown for the zero row, and refuses expired and revoked tokens. If the deletion of the organisation has begun, the token counts as
// revoked.
func (s *Store) toIdentity(ctx context.Context, row tokenRow) (Identity, error) {
	if row.ID == uuid.Nil {
		return Identity{}, ErrTokenUnknown
	}
	token := row.toToken()
	switch token.State(s.db.Now()) {
	case TokenRevoked:
		return Identity{}, ErrTokenRevoked
	case TokenExpired:
		return Identity{}, ErrTokenExpired
	case TokenValid:
	}
	org, err := s.Organisation(ctx, row.OrganisationID)
	switch {
	case errors.Is(err, db.ErrNotFound): // the organisation was deleted after the row of the token was read
		return Identity{}, ErrTokenUnknown
	case err != nil:
		return Identity{}, err
	case org.DeletingSince != nil:
		return Identity{}, ErrTokenRevoked
	}
	return Identity{Organisation: org, Token: token}, nil
}

// lockToken locks a token until the end of the transaction, so that it is not deleted meanwhile. It returns ErrTokenUnknown if there is no such token.
func lockToken(tx *gorm.DB, id uuid.UUID) error {
	var rows []tokenRow
	if err := db.ForUpdate(tx.Select("id").Where("id = ?", id)).Limit(1).Find(&rows).Error; err != nil {
		return err
	}
	if len(rows) == 0 {
		return ErrTokenUnknown
	}
	return nil
}

// SaveTokenUse stores the time at which a token was last used. It stores nothing if the token was deleted.
func (s *Store) SaveTokenUse(ctx context.Context, id uuid.UUID, at time.Time) error {
	type tokenUse struct {
		TokenID    uuid.UUID
		LastUsedAt db.Instant
	}
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		if err := lockToken(tx, id); err != nil {
			if errors.Is(err, ErrTokenUnknown) {
				return nil
			}
			return err
		}
		return tx.Table("token_uses").Clauses(clause.OnConflict{
			Columns: []clause.Column{{Name: "token_id"}}, DoUpdates: clause.AssignmentColumns([]string{"last_used_at"}),
		}).Create(&tokenUse{id, db.InstantOf(at)}).Error
	})
}
