package store

import (
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Author is the account of a video as a source or a link names it.
type Author struct {
	Platform   link.Platform
	ExternalID string // the platform's own id; "" if unknown
	SourceID   string // as AccountFacts.SourceID; "" if the source has none
	Username   string // "" if unknown
	Name       *string
}

// AccountResolver finds the account record of an author. The platform's own id decides, then the source's id. A handle decides only if no
// known id contradicts it.
type AccountResolver struct {
	Org     uuid.UUID
	Now     db.Instant
	claimed bool // the authors come from links of a caller; no source has confirmed them
	Rows    []*Account
	dirty   []*Account // changed or new
	lost    []*Account // no longer have their handle
	renamed []handleChange
}

// Resolve returns the record of an author. It makes a record if there is none, and updates handle, ids and name of the record.
func (b *AccountResolver) Resolve(a Author) *Account {
	row := b.find(func(r *Account) bool {
		return a.ExternalID != "" && r.ExternalID != nil && *r.ExternalID == a.ExternalID
	}, a.Platform)
	if row == nil {
		row = b.find(func(r *Account) bool { return r.Matches(a) }, a.Platform)
	}
	bearer := b.find(func(r *Account) bool { return a.Username != "" && r.HandleCurrent && r.Username == a.Username }, a.Platform)
	if row == nil && bearer != nil && !bearer.IsOtherThan(a) {
		row = bearer
	}
	if row == nil {
		row = &Account{OrganisationID: b.Org, ID: db.NewID(), Platform: a.Platform, Username: a.Username, CreatedAt: b.Now}
		b.Rows = append(b.Rows, row)
		b.MarkChanged(row)
	}
	// An answer that is older than the account's last fetch does not restore an old handle or name.
	late := row.CheckedAt != nil && *row.CheckedAt > b.Now
	if a.Username != "" && !late && (row.Username != a.Username || !row.HandleCurrent) {
		if bearer != nil && bearer != row {
			bearer.HandleCurrent = false
			b.lost = append(b.lost, bearer)
		}
		if row.Username != "" && row.Username != a.Username {
			b.renamed = append(b.renamed, handleChange{account: row, from: row.Username})
		}
		row.Username, row.HandleCurrent = a.Username, true
		b.MarkChanged(row)
	}
	if a.ExternalID != "" && row.ExternalID == nil {
		row.ExternalID = &a.ExternalID
		b.MarkChanged(row)
	}
	if a.SourceID != "" && row.SourceID == nil {
		row.SourceID = &a.SourceID
		b.MarkChanged(row)
	}
	if a.Name != nil && (row.Name == nil || !late && *row.Name != *a.Name) {
		row.Name = a.Name
		b.MarkChanged(row)
	}
	if l := accountLink(row); l != row.Link {
		row.Link = l
		b.MarkChanged(row)
	}
	return row
}

// Matches returns true if an id shows that the account is the author.
func (a *Account) Matches(an Author) bool {
	return a.ExternalID != nil && *a.ExternalID == an.ExternalID || a.SourceID != nil && *a.SourceID == an.SourceID && !a.IsOtherThan(an)
}

// IsOtherThan returns true if an id shows that the account is not the author. Ids can show that only if both have an id of the same kind.
func (a *Account) IsOtherThan(than Author) bool {
	var id, sourceID string
	db.Assign(&id, a.ExternalID)
	db.Assign(&sourceID, a.SourceID)
	return DifferentAccounts(id, sourceID, than.ExternalID, than.SourceID)
}

// accountLink returns the link of an account. If the account has no handle, the link contains its id: sources then report the id as
// handle, and no page has that name.
func accountLink(a *Account) string {
	if a.ExternalID != nil && (a.Username == "" || a.Username == *a.ExternalID) {
		return link.AccountIDURL(a.Platform, *a.ExternalID)
	}
	return link.AccountURL(a.Platform, a.Username)
}

func (b *AccountResolver) find(is func(*Account) bool, p link.Platform) *Account {
	for _, r := range b.Rows {
		if r.Platform == p && is(r) {
			return r
		}
	}
	return nil
}

// MarkChanged adds the account to those that Save writes.
func (b *AccountResolver) MarkChanged(a *Account) {
	if !slices.Contains(b.dirty, a) {
		b.dirty = append(b.dirty, a)
	}
}

// Save writes the changed accounts, and the handles that other tables contain.
func (b *AccountResolver) Save(tx *gorm.DB) error {
	if err := b.SaveRows(tx); err != nil {
		return err
	}
	return b.UpdateHandles(tx)
}

// SaveRows writes the changed accounts. Accounts that lost their handle are written first, because two accounts cannot have a handle at
// the same time.
func (b *AccountResolver) SaveRows(tx *gorm.DB) error {
	if len(b.lost) > 0 {
		ids := make([]uuid.UUID, len(b.lost))
		for i, a := range b.lost {
			ids[i] = a.ID
		}
		if err := db.Scoped(tx, "accounts", b.Org).Where("accounts.id IN ?", ids).Update("handle_current", false).Error; err != nil {
			return err
		}
	}
	if len(b.dirty) == 0 {
		return nil
	}
	return tx.Clauses(clause.OnConflict{
		Columns:   db.Columns([]string{"organisation_id", "id"}),
		DoUpdates: clause.AssignmentColumns([]string{"external_id", "source_id", "username", "handle_current", "name", "link"}),
	}).CreateInBatches(b.dirty, db.InsertChunk).Error
}

// UpdateHandles updates the handles of renamed accounts in other tables.
func (b *AccountResolver) UpdateHandles(tx *gorm.DB) error {
	for _, r := range b.renamed {
		if err := r.update(tx, b.Org, b.Now, !b.claimed); err != nil {
			return err
		}
	}
	return nil
}

// Handles change, and other accounts use them later. So an account is fetched by its own id as soon as that id is known, and its target
// gets that id as its name. If the account that has the handle now has another id, it is another account.

// SourceIDMark is the first character of the name of a target that is known by a source's id only.
const SourceIDMark = "~"

// DifferentAccounts returns true if two pairs of ids belong to different accounts. Each pair is the platform's own id and a source's id,
// "" if unknown. Only ids of the same kind can be compared, and ids of two sources only if the same issuer made them. The issuer's name is
// the part of a source's id before its last slash.
func DifferentAccounts(id, sourceID, otherID, otherSourceID string) bool {
	if id != "" && otherID != "" {
		return id != otherID
	}
	return sourceID != otherSourceID && sourceID != "" && otherSourceID != "" && issuer(sourceID) == issuer(otherSourceID)
}

func issuer(sourceID string) string { return sourceID[:max(0, strings.LastIndexByte(sourceID, '/'))] }

// handleChange is a change of an account's handle. from is the old handle.
type handleChange struct {
	account *Account
	from    string
}

// update replaces the old handle in the organisation's videos of the account and in its subscriptions to them. If told is true, a source
// reported the new handle, so update also changes the shared targets. A target of the account that could not be found under the old handle
// is then due at once.
func (r handleChange) update(tx *gorm.DB, org uuid.UUID, now db.Instant, told bool) error {
	named := map[string]any{"org": org, "id": gorm.Expr("CAST(? AS "+db.UUIDType(tx)+")", r.account.ID), "platform": r.account.Platform, "from": r.from,
		"to": r.account.Username, "link": r.account.Link, "bucket": queue.Bucket, "now": now, "active": queue.StateActive}
	statements := []string{
		`UPDATE videos SET username = @to WHERE organisation_id = @org AND linked_account_id = @id AND username = @from`,
		`UPDATE fetch_subscriptions SET handle = @to WHERE organisation_id = @org AND bucket = @bucket AND source = @platform AND kind = 'video' AND handle = @from AND subject_id IN
 (SELECT v.id FROM videos v WHERE v.organisation_id = @org AND v.linked_account_id = @id)`,
	}
	if told {
		statements = append(statements,
			`UPDATE fetch_targets SET handle = @to WHERE bucket = @bucket AND source = @platform AND kind = 'video' AND handle = @from AND external_id IN
 (SELECT v.external_id FROM videos v WHERE v.organisation_id = @org AND v.linked_account_id = @id)`,
			`UPDATE fetch_targets SET handle = @to, link = @link, state = @active, attempts = 0, refused_as = '', refusals = 0,
  next_at = CASE WHEN (attempts > 0 OR state <> @active) AND claimed_by IS NULL THEN @now ELSE next_at END,
  requested_at = CASE WHEN attempts > 0 OR state <> @active THEN requested_at + 1 ELSE requested_at END
 WHERE bucket = @bucket AND source = @platform AND kind = 'account' AND handle <> @to AND external_id IN
 (SELECT s.external_id FROM fetch_subscriptions s WHERE s.organisation_id = @org AND s.subject_id = @id AND s.bucket = @bucket AND s.source = @platform AND s.kind = 'account')`)
	}
	for _, statement := range statements {
		if err := tx.Exec(statement, named).Error; err != nil {
			return err
		}
	}
	return nil
}
