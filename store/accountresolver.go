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

// Author is the account that posted a video, with the ids and names that a source or a link contains.
type Author struct {
	Platform   link.Platform
	ExternalID string // the platform's own id of the account; "" if unknown
	SourceID   string // the id that the source uses for the account, or a result of userNameID; "" if neither is known
	Username   string // the handle of the account; "" if unknown
	Name       *string
}

// AccountResolver finds the account record of an author. It compares the platform's own ids first,
// then the sources' ids, then the handles.
type AccountResolver struct {
	org         uuid.UUID
	now         db.Instant                 // time of the fetch or request that contained the authors
	fromRequest bool                       // the authors come from links in a request, so no source has confirmed their handles
	rows        []*Account                 // the account records among which AccountResolver looks for an author: the existing records and the new records
	named       map[accountName][]*Account // the key is an id or a handle; the value has all records that have or had this id or handle
	changed     map[*Account]bool          // records that must be written, because they are changed or new
	lost        []*Account                 // records whose handle now belongs to another account
	renamed     []handleChange             // the renamed accounts, each with its old handle
}

// accountName is an id or handle of an account on a platform.
type accountName struct {
	platform link.Platform
	kind     nameKind
	name     string
}

// nameKind says what kind of name an accountName contains: an id of the platform, an id of a source, or a handle.
type nameKind int

const (
	externalID nameKind = iota // the platform's own id of the account
	sourceID                   // the id that a source uses for the account
	handle
)

// NewAccountResolver returns a resolver for the authors that one fetch or request names. namedAt is the time of
// this fetch or request. knownAccounts must contain every account that can match an author.
func NewAccountResolver(org uuid.UUID, namedAt db.Instant, knownAccounts []*Account) *AccountResolver {
	b := &AccountResolver{org: org, now: namedAt, rows: knownAccounts, named: map[accountName][]*Account{}, changed: map[*Account]bool{}}
	for _, row := range knownAccounts {
		b.indexNames(row)
	}
	return b
}

// indexNames adds the record to the map that findRecord reads. The keys are the present ids and the present handle of the record.
func (b *AccountResolver) indexNames(row *Account) {
	add := func(kind nameKind, name string) {
		key := accountName{row.Platform, kind, name}
		if !slices.Contains(b.named[key], row) {
			b.named[key] = append(b.named[key], row)
		}
	}
	if row.ExternalID != nil {
		add(externalID, *row.ExternalID)
	}
	if row.SourceID != nil {
		add(sourceID, *row.SourceID)
	}
	add(handle, row.Username)
}

// Resolve returns the account record of an author. If no record matches, it creates one. The record gets the ids and the name that it lacks. Unless a
// later fetch has updated the record, it also gets the author's handle and name. A handle from a request does not replace a confirmed handle: see
// isHandleConfirmed.
func (b *AccountResolver) Resolve(a Author) *Account {
	matches := func(r *Account) bool { return r.Matches(a) }
	row := b.findRecord(a.Platform, externalID, a.ExternalID, matches)
	if row == nil {
		row = b.findRecord(a.Platform, sourceID, a.SourceID, matches)
	}
	handleOwner := b.findRecord(a.Platform, handle, a.Username, func(r *Account) bool { return r.HandleCurrent && r.Username == a.Username })
	if row == nil && handleOwner != nil && !handleOwner.IsOtherThan(a) {
		row = handleOwner
	}
	if _, ok := link.YouTubeUser(a.Platform, a.Username); ok && row != nil {
		a.Username = "" // a user name must not replace the confirmed handle of the channel
	}
	if row == nil {
		row = &Account{OrganisationID: b.org, ID: db.NewID(), Platform: a.Platform, Username: a.Username, CreatedAt: b.now}
		b.rows = append(b.rows, row)
		b.MarkChanged(row)
	}
	// A later fetch may already have given the account a newer handle and name. The older handle and name in this answer must not replace them.
	outdated := row.CheckedAt != nil && *row.CheckedAt > b.now
	if a.Username != "" && !outdated && (!b.fromRequest || !row.isHandleConfirmed()) && (row.Username != a.Username || !row.HandleCurrent) {
		if handleOwner != nil && handleOwner != row {
			handleOwner.HandleCurrent = false
			b.lost = append(b.lost, handleOwner)
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
	if a.Name != nil && (row.Name == nil || !outdated && *row.Name != *a.Name) {
		row.Name = a.Name
		b.MarkChanged(row)
	}
	if l := accountLink(row); l != row.Link {
		row.Link = l
		b.MarkChanged(row)
	}
	return row
}

// isHandleConfirmed returns true if a fetch of the account has confirmed the handle. A link in a request must not replace such a handle. For example,
// the link of a Facebook page can contain the page's title and id in place of its handle.
func (a *Account) isHandleConfirmed() bool {
	return a.HandleCurrent && a.CheckedAt != nil && a.ExternalID != nil && a.Username != "" && a.Username != *a.ExternalID
}

// userNameID returns the SourceID of the channel that a YouTube link /user/NAME names. It returns "" if the handle is not that of such a link. The user
// name of a channel never changes, so the SourceID finds the channel even after a fetch has replaced the handle.
func userNameID(p link.Platform, handle string) string {
	if name, ok := link.YouTubeUser(p, handle); ok {
		return "user/" + name
	}
	return ""
}

// Matches returns true if the account and the author have the same ExternalID. It also returns true if their SourceIDs are equal and IsOtherThan
// returns false.
func (a *Account) Matches(author Author) bool {
	return a.ExternalID != nil && *a.ExternalID == author.ExternalID || a.SourceID != nil && *a.SourceID == author.SourceID && !a.IsOtherThan(author)
}

// IsOtherThan returns true if the ids prove that the account and the author are different accounts. It returns false if the ids are equal, or if
// they cannot be compared.
func (a *Account) IsOtherThan(author Author) bool {
	var id, sourceID string
	db.Assign(&id, a.ExternalID)
	db.Assign(&sourceID, a.SourceID)
	return DifferentAccounts(id, sourceID, author.ExternalID, author.SourceID)
}

// accountLink returns the canonical link of an account. If the account has no handle, the link
// contains the platform's own id.
func accountLink(a *Account) string {
	// Some sources report the platform's own id in place of a missing handle.
	if a.ExternalID != nil && (a.Username == "" || a.Username == *a.ExternalID) {
		return link.AccountURLFromID(a.Platform, *a.ExternalID)
	}
	return link.AccountURL(a.Platform, a.Username)
}

// findRecord returns the first record that has the given id or handle and fulfils isMatch. The
// result is nil if there is no such record.
func (b *AccountResolver) findRecord(p link.Platform, kind nameKind, idOrHandle string, isMatch func(*Account) bool) *Account {
	if idOrHandle == "" {
		return nil
	}
	for _, r := range b.named[accountName{p, kind, idOrHandle}] {
		if isMatch(r) {
			return r
		}
	}
	return nil
}

// MarkChanged marks a record as changed, so that Save writes the record. Call it after you have changed the record.
func (b *AccountResolver) MarkChanged(a *Account) {
	b.changed[a] = true
	b.indexNames(a)
}

// ReplaceHandle makes Save replace an old handle of an account by the present one, in the tables of videos, subscriptions and targets. It does nothing
// if one of the two is unknown or if they are equal.
func (b *AccountResolver) ReplaceHandle(a *Account, old string) {
	if old == "" || a.Username == "" || old == a.Username {
		return
	}
	b.renamed = append(b.renamed, handleChange{account: a, from: old})
	b.MarkChanged(a)
}

// Save writes the changed records. It also writes the new handles of renamed accounts to the other tables that contain handles: see UpdateHandles.
func (b *AccountResolver) Save(tx *gorm.DB) error {
	if err := b.SaveRows(tx); err != nil {
		return err
	}
	return b.UpdateHandles(tx)
}

// SaveRows writes the changed records. Two accounts of a platform cannot have the same handle at the same time. So SaveRows first takes the
// old handle from each record that lost or changed its handle.
func (b *AccountResolver) SaveRows(tx *gorm.DB) error {
	if len(b.lost)+len(b.renamed) > 0 {
		var ids []uuid.UUID
		for _, a := range b.lost {
			ids = append(ids, a.ID)
		}
		for _, r := range b.renamed {
			ids = append(ids, r.account.ID)
		}
		if err := db.Scoped(tx, "accounts", b.org).Where("accounts.id IN ?", ids).Update("handle_current", false).Error; err != nil {
			return err
		}
	}
	if len(b.changed) == 0 {
		return nil
	}
	changed := slices.DeleteFunc(slices.Clone(b.rows), func(a *Account) bool { return !b.changed[a] })
	return tx.Clauses(clause.OnConflict{
		Columns:   db.Columns([]string{"organisation_id", "id"}),
		DoUpdates: clause.AssignmentColumns([]string{"external_id", "source_id", "username", "handle_current", "name", "link"}),
	}).CreateInBatches(changed, db.InsertChunk).Error
}

// UpdateHandles replaces the old handles of renamed accounts in the tables of videos, subscriptions and targets. Targets change only if a source has
// reported the new handle.
func (b *AccountResolver) UpdateHandles(tx *gorm.DB) error {
	for _, r := range b.renamed {
		if err := r.replaceHandle(tx, b.org, b.now, !b.fromRequest); err != nil {
			return err
		}
	}
	return nil
}

// Two accounts can use the same handle, one after the other. So records with the same handle and
// different ids belong to different accounts.

// SourceIDMark is the first character of an account's name in the fetch queue, if the name is made
// from a source's id.
const SourceIDMark = "~"

// DifferentAccounts returns true if the ids prove that two accounts are different. An unknown id is
// "". id and otherID are the platform's own ids.
func DifferentAccounts(id, sourceID, otherID, otherSourceID string) bool {
	if id != "" && otherID != "" {
		return id != otherID
	}
	// Two ids of sources can be compared only if they have the same issuer.
	return sourceID != otherSourceID && sourceID != "" && otherSourceID != "" && issuerOf(sourceID) == issuerOf(otherSourceID)
}

// issuerOf returns the part of a source's id before the last slash, or "" if the id has no slash.
func issuerOf(sourceID string) string { return sourceID[:max(0, strings.LastIndexByte(sourceID, '/'))] }

// handleChange is a change of the handle of a renamed account.
type handleChange struct {
	account *Account // the renamed account, with its new handle
	from    string   // the old handle of the account
}

// replaceHandle replaces a renamed account's old handle in the organisation's videos and their subscriptions. If a source reported the new handle,
// confirmed is true, and the targets of the videos and of the account also get this handle.
func (r handleChange) replaceHandle(tx *gorm.DB, org uuid.UUID, now db.Instant, confirmed bool) error {
	named := map[string]any{"org": org, "id": gorm.Expr("CAST(? AS "+db.UUIDType(tx)+")", r.account.ID), "platform": r.account.Platform, "from": r.from,
		"to": r.account.Username, "link": r.account.Link, "bucket": queue.Bucket, "now": now, "active": queue.StateActive}
	statements := []string{
		`UPDATE videos SET username = @to WHERE organisation_id = @org AND linked_account_id = @id AND username = @from`,
		`UPDATE fetch_subscriptions SET handle = @to WHERE organisation_id = @org AND bucket = @bucket AND source = @platform AND kind = 'video' AND handle = @from AND subject_id IN
 (SELECT v.id FROM videos v WHERE v.organisation_id = @org AND v.linked_account_id = @id)`,
	}
	// All organisations share the targets, so only a confirmed handle is written to them.
	if confirmed {
		statements = append(statements,
			`UPDATE fetch_targets SET handle = @to WHERE bucket = @bucket AND source = @platform AND kind = 'video' AND handle = @from AND external_id IN
 (SELECT v.external_id FROM videos v WHERE v.organisation_id = @org AND v.linked_account_id = @id)`,
			// If fetches with the old handle failed, the account's target becomes due immediately.
			`UPDATE fetch_targets SET handle = @to, link = @link, state = @active, attempts = 0, refused_as = '', refusals = 0, answers = NULL,
  route = COALESCE((SELECT r.route FROM fetch_routes r WHERE r.source = fetch_targets.source AND r.kind = fetch_targets.kind), route),
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
