package store

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// StopVideos stops the tracking of videos, but keeps their history. It returns the refs without a
// tracked video, in order. If allOrNothing is true, such refs prevent all changes.
func (o *Org) StopVideos(ctx context.Context, refs []Ref, allOrNothing bool) (unmatched []Ref, err error) {
	err = o.changeData(ctx, func(t OrgTx) error {
		unmatched, err = t.Stop(refs, allOrNothing)
		return err
	})
	return unmatched, err
}

// Stop does the work of StopVideos in the transaction t.Tx.
func (t OrgTx) Stop(refs []Ref, allOrNothing bool) (unmatched []Ref, err error) {
	unmatched, ids, accounts, err := t.trackedIDs(refs)
	if err != nil || len(ids) == 0 || (allOrNothing && len(unmatched) > 0) {
		return unmatched, err
	}
	_, err = t.stopTrackedVideos(accounts, "videos.id IN ?", ids)
	return unmatched, err
}

// stopTrackedVideos stops the tracked videos that match a condition, and recomputes the statistics of the given accounts. It returns the number of
// these videos. The caller must pass the accounts of all videos that match.
func (t OrgTx) stopTrackedVideos(accounts []db.RowKey, condition string, args ...any) (int64, error) {
	err := queue.Unsubscribe(t.Tx, t.id, "subject_id IN (SELECT videos.id FROM videos WHERE videos.organisation_id = ? AND NOT videos.removed AND "+condition+")",
		append([]any{t.id}, args...)...)
	if err != nil {
		return 0, err
	}
	events, err := t.eventRecorder()
	if err != nil {
		return 0, err
	}
	var videos []Video
	update := t.Tx
	if events.IsRecording(t.id) { // if events are recorded, the UPDATE also returns the stopped videos
		update = t.Tx.Model(&videos).Clauses(clause.Returning{})
	}
	stopped := db.Scoped(update, "videos", t.id).Where("NOT videos.removed AND "+condition, args...).Updates(setStoppedStatus(map[string]any{"removed": true, "pending": false}))
	if stopped.Error != nil {
		return 0, stopped.Error
	}
	events.addStoppedVideos(videos)
	if err := events.Save(); err != nil {
		return 0, err
	}
	err = t.Tx.Exec("UPDATE organisation_totals SET videos = videos - ?, videos_removed = videos_removed + ? WHERE organisation_id = ?",
		stopped.RowsAffected, stopped.RowsAffected, t.id).Error
	if err != nil {
		return 0, err
	}
	return stopped.RowsAffected, t.updateSums(accounts)
}

// recordRestart records an event for each video that was stopped and is tracked again. Call it after the new values of the videos are stored.
// The event also has the earlier status, so that programs that copy the data notice that the video is no longer stopped.
func (t OrgTx) recordRestart(ids []uuid.UUID) error {
	events, err := t.eventRecorder()
	if err != nil || !events.IsRecording(t.id) {
		return err
	}
	var videos []Video
	if err := db.Scoped(t.Tx, "videos", t.id).Where("videos.id IN ?", ids).Order("videos.id").Find(&videos).Error; err != nil {
		return err
	}
	for i := range videos {
		before := videos[i]
		before.FetchStatus = queue.FetchStopped
		events.AddVideoStatus(&before, &videos[i])
	}
	return events.Save()
}

// trackedIDs returns the ids and accounts of the tracked videos that the refs name, without duplicates. It also returns the refs that name no
// tracked video.
func (t OrgTx) trackedIDs(refs []Ref) (unmatched []Ref, ids []uuid.UUID, accounts []db.RowKey, err error) {
	var byID []uuid.UUID
	byLink := map[link.Platform][]string{}
	for _, r := range refs {
		if r.ID != uuid.Nil {
			byID = append(byID, r.ID)
		} else {
			byLink[r.Link.Platform] = append(byLink[r.Link.Platform], r.Link.ID)
		}
	}
	conditions, args := []string{"videos.id IN ?"}, []any{append(byID, uuid.Nil)}
	for _, p := range link.Platforms {
		if external := byLink[p]; len(external) > 0 {
			conditions, args = append(conditions, "(videos.platform = ? AND videos.external_id IN ?)"), append(args, p, external)
		}
	}
	q := db.Scoped(t.Tx, "videos", t.id).Where("NOT videos.removed AND ("+strings.Join(conditions, " OR ")+")", args...).Order("videos.platform, videos.external_id")
	var rows []Video
	if err := q.Find(&rows).Error; err != nil {
		return nil, nil, nil, err
	}
	known, linked := map[uuid.UUID]bool{}, map[string]bool{}
	for _, v := range rows {
		known[v.ID], linked[queue.TargetKey(v.Platform, v.ExternalID)] = true, true
		ids = append(ids, v.ID)
	}
	for _, r := range refs {
		if !known[r.ID] && (r.ID != uuid.Nil || !linked[queue.TargetKey(r.Link.Platform, r.Link.ID)]) {
			unmatched = append(unmatched, r)
		}
	}
	return unmatched, ids, LinkedAccounts(rows), nil
}

// StoppedVideos has the numbers of videos of an account whose tracking was stopped.
type StoppedVideos struct {
	Stopped      int64 // videos whose tracking was stopped with the account
	StillTracked int64 // videos that stay tracked, because they were added by their own links
}

// StopAccount does the work of StopAccounts for one account and returns the numbers of its videos. It returns false if ref names no tracked account.
func (o *Org) StopAccount(ctx context.Context, ref Ref) (videos StoppedVideos, found bool, err error) {
	err = o.changeData(ctx, func(t OrgTx) error {
		unmatched, ids, stopped, err := t.stopAccounts([]Ref{ref}, true)
		videos, found = StoppedVideos{Stopped: stopped}, len(unmatched) == 0
		if err != nil || !found {
			return err
		}
		return db.Scoped(t.Tx, "videos", o.id).Where("videos.linked_account_id IN ? AND NOT videos.removed", ids).Count(&videos.StillTracked).Error
	})
	return videos, found, err
}

// StopAccounts stops the tracking of accounts and of their videos, except videos that were added by their own links. It returns those refs
// that name no tracked account, in their original order. If allOrNothing is true and there is such a ref, it stops nothing.
func (o *Org) StopAccounts(ctx context.Context, refs []Ref, allOrNothing bool) (unmatched []Ref, err error) {
	err = o.changeData(ctx, func(t OrgTx) error {
		unmatched, _, _, err = t.stopAccounts(refs, allOrNothing)
		return err
	})
	return unmatched, err
}

// stopAccounts does the work of StopAccounts in the transaction t.Tx. It also returns the ids of the accounts that the refs name, and how many videos it
// stopped.
func (t OrgTx) stopAccounts(refs []Ref, allOrNothing bool) (unmatched []Ref, ids []uuid.UUID, stoppedVideos int64, err error) {
	for _, ref := range refs {
		var found []uuid.UUID
		if err := addAccountCondition(db.Scoped(t.Tx, "accounts", t.id), ref).Where("accounts.tracked").Pluck("id", &found).Error; err != nil {
			return nil, nil, 0, err
		}
		if len(found) == 0 {
			unmatched = append(unmatched, ref)
		}
		ids = append(ids, found...)
	}
	if len(ids) == 0 || (allOrNothing && len(unmatched) > 0) {
		return unmatched, nil, 0, nil
	}
	ids = db.Distinct(ids)
	stopped := db.Scoped(t.Tx, "accounts", t.id).Where("accounts.id IN ? AND accounts.tracked", ids).Updates(setStoppedStatus(map[string]any{"tracked": false, "removed": true}))
	if stopped.Error != nil {
		return nil, nil, 0, stopped.Error
	}
	if err := queue.Unsubscribe(t.Tx, t.id, "subject_id IN ?", ids); err != nil {
		return nil, nil, 0, err
	}
	err = t.Tx.Exec("UPDATE organisation_totals SET accounts = accounts - ?, accounts_removed = accounts_removed + ? WHERE organisation_id = ?",
		stopped.RowsAffected, stopped.RowsAffected, t.id).Error
	if err != nil {
		return nil, nil, 0, err
	}
	stoppedVideos, err = t.stopTrackedVideos(db.KeysOf(t.id, ids), "videos.linked_account_id IN ? AND NOT videos.direct", ids)
	return unmatched, ids, stoppedVideos, err
}
