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

// Author is an account as a source names it.
type Author struct {
	Platform   link.Platform
	ExternalID string // "" when the source does not say
	SourceID   string // as AccountFacts.SourceID, "" when the source has none
	Username   string // "" when the source does not say
	Name       *string
}

// AccountResolver decides which account an author is. The platform's own id decides, then the source's; a handle counts only for
// an account of which no id is known that says otherwise.
type AccountResolver struct {
	Org     uuid.UUID
	Now     db.Instant
	claimed bool // the authors come from a caller's links; no source has confirmed them
	Rows    []*Account
	dirty   []*Account // changed or new
	lost    []*Account // no longer bear their handle
	renamed []handleChange
}

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
	// An answer that is older than the account's own, and written late, brings no former handle or name back.
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

// Matches says whether an id tells the account to be an author.
func (a *Account) Matches(an Author) bool {
	return a.ExternalID != nil && *a.ExternalID == an.ExternalID || a.SourceID != nil && *a.SourceID == an.SourceID && !a.IsOtherThan(an)
}

// IsOtherThan says whether an id tells the account from an author. Where the two have no id of one kind in common, nothing does.
func (a *Account) IsOtherThan(than Author) bool {
	var id, sourceID string
	db.Assign(&id, a.ExternalID)
	db.Assign(&sourceID, a.SourceID)
	return DifferentAccounts(id, sourceID, than.ExternalID, than.SourceID)
}

// accountLink goes by the account's id where it has no handle: sources then give the id for one, and there is no page of that
// name.
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

func (b *AccountResolver) MarkChanged(a *Account) {
	if !slices.Contains(b.dirty, a) {
		b.dirty = append(b.dirty, a)
	}
}

// Save writes what changed, and what follows from it.
func (b *AccountResolver) Save(tx *gorm.DB) error {
	if err := b.SaveRows(tx); err != nil {
		return err
	}
	return b.UpdateHandles(tx)
}

// SaveRows writes the accounts that changed. Those that lost their handle go first, since two cannot bear one at a time.
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

// UpdateHandles brings what repeats the handles of renamed accounts up to date.
func (b *AccountResolver) UpdateHandles(tx *gorm.DB) error {
	for _, r := range b.renamed {
		if err := r.update(tx, b.Org, b.Now, !b.claimed); err != nil {
			return err
		}
	}
	return nil
}

// Handles change, and are used again by others. An account is therefore asked for by its own id wherever it can be, its
// place in the queue is called by that id as soon as it is known, and who answers to its handle with another id is
// somebody else.

// SourceIDMark begins the name of a target of which a source's id alone is known, and no handle does.
const SourceIDMark = "~"

// DifferentAccounts says whether two pairs of ids, the platform's own and a source's, each "" where it is not known, are of
// two accounts. Where they have no id of one kind in common, nothing tells them apart. A source's id is one of its issuer,
// whose name stands before the last slash: those of two issuers have nothing in common either.
func DifferentAccounts(id, sourceID, otherID, otherSourceID string) bool {
	if id != "" && otherID != "" {
		return id != otherID
	}
	return sourceID != otherSourceID && sourceID != "" && otherSourceID != "" && issuer(sourceID) == issuer(otherSourceID)
}

func issuer(sourceID string) string { return sourceID[:max(0, strings.LastIndexByte(sourceID, '/'))] }

// handleChange is a change of an account's handle; from is the old one.
type handleChange struct {
	account *Account
	from    string
}

// follow updates what contains the old handle: the organisation's videos of the account and its claims on their targets. If told is true,
// a source reported the new handle, so the shared targets of all organisations are updated too. An account that could not be found under
// the old handle is then fetched at once under the new one.
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
