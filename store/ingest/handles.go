package ingest

import (
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// renameTarget changes the external id of an account's target to the id that the source reported. If another target already has that id,
// renameTarget merges the two targets. The lists locked and subscribers are the results of lockSubscribers. If an organisation outside of subscribers
// tracks the target, renameTarget returns ErrDuplicate. acknowledgeAccounts then repeats the transaction, which locks this organisation too.
func renameTarget(tx *gorm.DB, o Outcome, locked, subscribers []uuid.UUID) error {
	from, to := o.Target.ExternalID, externalIDAfterFetch(o)
	if to == from {
		return nil
	}
	named := map[string]any{"bucket": queue.Bucket, "platform": o.Target.Platform, "from": from, "to": to, "user": "%" + link.YouTubeUserSuffix, "organisations": locked}
	// Lock both targets. If another transaction is deleting one of them, this statement waits, and then does not find it. After this statement, no
	// other transaction can subscribe to the targets.
	var targets []string
	err := tx.Raw(`SELECT external_id FROM fetch_targets WHERE bucket = @bucket AND source = @platform AND kind = 'account' AND external_id IN (@from, @to) ORDER BY external_id`+
		db.ForUpdateClause(tx, "fetch_targets"), named).Scan(&targets).Error
	if err != nil {
		return err
	}
	var current []uuid.UUID
	err = tx.Raw(`SELECT organisation_id FROM fetch_subscriptions WHERE bucket = @bucket AND source = @platform AND kind = 'account' AND external_id = @from`,
		named).Scan(&current).Error
	if err != nil {
		return err
	}
	for _, org := range current {
		if !slices.Contains(subscribers, org) {
			return db.ErrDuplicate
		}
	}
	statements := []string{
		`UPDATE fetch_targets SET external_id = @to WHERE bucket = @bucket AND source = @platform AND kind = 'account' AND external_id = @from`,
		`UPDATE fetch_subscriptions SET external_id = @to WHERE bucket = @bucket AND source = @platform AND kind = 'account' AND external_id = @from`,
	}
	if slices.Contains(targets, to) {
		statements = []string{
			// The existing target (@to) gets the more urgent base lane and the greater depth of both targets. If it is not claimed, it also gets the
			// earlier due time. If its depth grows, requested_at rises, so that a claimed target becomes due again after the claim. The existing
			// target gets the handle and link of the fetched target (@from), unless @from has only a user name of YouTube.
			`UPDATE fetch_targets SET base_lane = CASE WHEN f.base_lane < fetch_targets.base_lane THEN f.base_lane ELSE fetch_targets.base_lane END,
  depth = CASE WHEN f.depth > fetch_targets.depth THEN f.depth ELSE fetch_targets.depth END,
  requested_at = CASE WHEN f.depth > fetch_targets.depth THEN fetch_targets.requested_at + 1 ELSE fetch_targets.requested_at END,
  next_at = CASE WHEN fetch_targets.claimed_by IS NULL AND f.next_at < fetch_targets.next_at THEN f.next_at ELSE fetch_targets.next_at END,
  handle = CASE WHEN f.handle LIKE @user THEN fetch_targets.handle ELSE f.handle END,
  link = CASE WHEN f.handle LIKE @user THEN fetch_targets.link ELSE f.link END
  FROM (SELECT base_lane, depth, next_at, handle, link FROM fetch_targets WHERE bucket = @bucket AND source = @platform AND kind = 'account' AND external_id = @from) f
 WHERE fetch_targets.bucket = @bucket AND fetch_targets.source = @platform AND fetch_targets.kind = 'account' AND fetch_targets.external_id = @to`,
			`DELETE FROM fetch_targets WHERE bucket = @bucket AND source = @platform AND kind = 'account' AND external_id = @from`,
			`INSERT INTO fetch_subscriptions (bucket, source, kind, external_id, organisation_id, subject_id, handle, handle_at, preview)
SELECT s.bucket, s.source, s.kind, @to, s.organisation_id, s.subject_id, s.handle, s.handle_at, s.preview FROM fetch_subscriptions s
 WHERE s.bucket = @bucket AND s.source = @platform AND s.kind = 'account' AND s.external_id = @from AND s.organisation_id IN @organisations
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

// externalIDAfterFetch returns the external id of an account's target after a fetch. It prefers the
// platform's id, then an id of the source, then a handle.
func externalIDAfterFetch(o Outcome) string {
	name, f := o.Target.ExternalID, o.Account
	byHandle, bySource := strings.HasPrefix(name, "@"), strings.HasPrefix(name, store.SourceIDMark)
	switch {
	case f == nil:
	case (byHandle || bySource) && f.ID != nil && store.IsAccountID(*f.ID):
		return *f.ID
	case byHandle && f.SourceID != nil:
		return store.SourceIDMark + *f.SourceID
	}
	return name
}

// isOtherAccount returns true if the reported ids prove that the source answered about another account.
func (d accountWriter) isOtherAccount(a *store.Account) bool {
	f := d.outcome.Account
	if f == nil {
		return false
	}
	var reported store.Author
	db.Assign(&reported.ExternalID, f.ID)
	db.Assign(&reported.SourceID, f.SourceID)
	return a.IsOtherThan(reported)
}

// markHandleLost sets HandleCurrent of the account's record to false. It does nothing if the fetch
// used another handle, or if the answer is outdated.
func (d accountWriter) markHandleLost(a *store.Account) error {
	if !a.HandleCurrent || d.isOutdated(a) || link.DisplayUsername(a.Username) != link.DisplayUsername(d.outcome.Target.Handle) {
		return nil
	}
	return db.Scoped(d.tx, "accounts", d.org).Where("accounts.id = ?", a.ID).Update("handle_current", false).Error
}

// subscribeToSeparateTarget moves the organisation's subscription to a new target for the account
// a. It is called if the source answered about another account.
func (d accountWriter) subscribeToSeparateTarget(a *store.Account) error {
	if err := d.markHandleLost(a); err != nil {
		return err
	}
	if err := queue.Unsubscribe(d.tx, d.org, "kind = ? AND subject_id = ?", queue.KindAccount, a.ID); err != nil {
		return err
	}
	org, err := store.ReadOrganisation(d.tx, d.org)
	if err != nil {
		return err
	}
	return queue.Enqueue(d.tx, d.org, []queue.Entry{store.AccountEntry(a, a.TrackingType, d.preview, store.LaneOf(org), d.at)}, d.at)
}
