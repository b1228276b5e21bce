package store

import (
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/link"
)

// Handles change, and are used again by others. An account is therefore asked for by its own id wherever it can be, its
// place in the queue is called by that id as soon as it is known, and who answers to its handle with another id is
// somebody else.

// sourceIDMark begins the name of a target of which a source's id alone is known, and no handle does.
const sourceIDMark = "~"

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

// rename is a change of an account's handle; from is the old one.
type rename struct {
	account *Account
	from    string
}

// follow updates what contains the old handle: the organisation's videos of the account and its claims on their targets. If told is true,
// a source reported the new handle, so the shared targets of all organisations are updated too. An account that could not be found under
// the old handle is then fetched at once under the new one.
func (r rename) follow(tx *gorm.DB, org uuid.UUID, now Instant, told bool) error {
	named := map[string]any{"org": org, "id": gorm.Expr("CAST(? AS "+uuidType(tx)+")", r.account.ID), "platform": r.account.Platform, "from": r.from,
		"to": r.account.Username, "link": r.account.Link, "bucket": bucket, "now": now, "active": StateActive}
	statements := []string{
		`UPDATE videos SET username = @to WHERE organisation_id = @org AND linked_account_id = @id AND username = @from`,
		`UPDATE fetch_subscriptions SET handle = @to WHERE organisation_id = @org AND bucket = @bucket AND source = @platform AND kind = 'video' AND handle = @from AND subject_id IN
 (SELECT v.id FROM videos v WHERE v.organisation_id = @org AND v.linked_account_id = @id)`,
	}
	if told {
		statements = append(statements,
			`UPDATE fetch_targets SET handle = @to WHERE bucket = @bucket AND source = @platform AND kind = 'video' AND handle = @from AND external_id IN
 (SELECT v.external_id FROM videos v WHERE v.organisation_id = @org AND v.linked_account_id = @id)`,
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

// nameTarget calls an account's target by the id that its source told. Where there is a target of that name already, made
// for an organisation that knew the id from the start, the two become one.
func nameTarget(tx *gorm.DB, o AccountOutcome) error {
	from, to := o.Target.ExternalID, targetName(o)
	if to == from {
		return nil
	}
	named := map[string]any{"bucket": bucket, "platform": o.Target.Platform, "from": from, "to": to}
	var there int64
	err := tx.Raw(`SELECT COUNT(*) FROM fetch_targets WHERE bucket = @bucket AND source = @platform AND kind = 'account' AND external_id = @to`, named).Scan(&there).Error
	if err != nil {
		return err
	}
	statements := []string{
		`UPDATE fetch_targets SET external_id = @to WHERE bucket = @bucket AND source = @platform AND kind = 'account' AND external_id = @from`,
		`UPDATE fetch_subscriptions SET external_id = @to WHERE bucket = @bucket AND source = @platform AND kind = 'account' AND external_id = @from`,
	}
	if there > 0 {
		statements = []string{
			// What the one of the handle still lacks, the other has to fetch; one that is being fetched comes back for it.
			`UPDATE fetch_targets SET base_lane = CASE WHEN f.base_lane < fetch_targets.base_lane THEN f.base_lane ELSE fetch_targets.base_lane END,
  depth = CASE WHEN f.depth > fetch_targets.depth THEN f.depth ELSE fetch_targets.depth END,
  requested_at = CASE WHEN f.depth > fetch_targets.depth THEN fetch_targets.requested_at + 1 ELSE fetch_targets.requested_at END,
  next_at = CASE WHEN fetch_targets.claimed_by IS NULL AND f.next_at < fetch_targets.next_at THEN f.next_at ELSE fetch_targets.next_at END,
  handle = f.handle, link = f.link
  FROM (SELECT base_lane, depth, next_at, handle, link FROM fetch_targets WHERE bucket = @bucket AND source = @platform AND kind = 'account' AND external_id = @from) f
 WHERE fetch_targets.bucket = @bucket AND fetch_targets.source = @platform AND fetch_targets.kind = 'account' AND fetch_targets.external_id = @to`,
			`DELETE FROM fetch_targets WHERE bucket = @bucket AND source = @platform AND kind = 'account' AND external_id = @from`,
			`INSERT INTO fetch_subscriptions (bucket, source, kind, external_id, organisation_id, subject_id, handle, handle_at, preview)
SELECT s.bucket, s.source, s.kind, @to, s.organisation_id, s.subject_id, s.handle, s.handle_at, s.preview FROM fetch_subscriptions s
 WHERE s.bucket = @bucket AND s.source = @platform AND s.kind = 'account' AND s.external_id = @from
ON CONFLICT (bucket, source, kind, external_id, organisation_id) DO NOTHING`,
			`DELETE FROM fetch_subscriptions WHERE bucket = @bucket AND source = @platform AND kind = 'account' AND external_id = @from`,
		}
	}
	for _, statement := range statements {
		if err := tx.Exec(statement, named).Error; err != nil {
			return err
		}
	}
	return nil
}

// targetName is what an account's target is to be called, given what its source told.
func targetName(o AccountOutcome) string {
	name, f := o.Target.ExternalID, o.Account
	byHandle, bySource := strings.HasPrefix(name, "@"), strings.HasPrefix(name, sourceIDMark)
	switch {
	case f == nil:
	case (byHandle || bySource) && f.ID != nil && IsAccountID(*f.ID):
		return *f.ID
	case byHandle && f.SourceID != nil:
		return sourceIDMark + *f.SourceID
	}
	return name
}

// isStranger says whether facts are of another account than the organisation's record.
func (d discovery) isStranger(a *Account) bool {
	f := d.outcome.Account
	if f == nil {
		return false
	}
	var told author
	set(&told.externalID, f.ID)
	set(&told.sourceID, f.SourceID)
	return a.isAnother(told)
}

// loseHandle notes that somebody else bears an account's handle, so that whoever tracks the handle from now on tracks that one.
func (d discovery) loseHandle(a *Account) error {
	if !a.HandleCurrent || d.isLate(a) || link.DisplayUsername(a.Username) != link.DisplayUsername(d.outcome.Target.Handle) {
		return nil
	}
	return scoped(d.tx, "accounts", d.org).Where("accounts.id = ?", a.ID).Update("handle_current", false).Error
}

// leave gives an account a target of its own, since the one that it was found by turned out to be another's.
func (d discovery) leave(a *Account) error {
	if err := d.loseHandle(a); err != nil {
		return err
	}
	if err := unsubscribe(d.tx, d.s.dialect, d.org, "kind = ? AND subject_id = ?", targetAccount, a.ID); err != nil {
		return err
	}
	org, err := d.organisation()
	if err != nil {
		return err
	}
	r := TrackAccountsRequest{Lane: LaneOf(org), Preview: d.preview}
	set(&r.Type, a.TrackingType)
	return enqueue(d.tx, d.org, []queueEntry{accountEntry(a, r, false, d.at)}, d.at)
}
