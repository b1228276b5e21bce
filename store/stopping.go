package store

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/queue"
)

// StopVideos stops the tracking of the videos with the given ids, but keeps their history. It returns the ids without a tracked video, in order.
func (o *Org) StopVideos(ctx context.Context, ids []uuid.UUID) (untracked []uuid.UUID, err error) {
	err = o.changeData(ctx, func(t OrgTx) error {
		untracked, err = t.StopVideos(ids)
		return err
	})
	return untracked, err
}

// StopVideos does the work of Org.StopVideos in the transaction t.Tx.
func (t OrgTx) StopVideos(ids []uuid.UUID) (untracked []uuid.UUID, err error) {
	var found []Video
	err = db.Scoped(t.Tx, "videos", t.id).Select("videos.organisation_id", "videos.id", "videos.linked_account_id").Where("NOT videos.removed AND videos.id IN ?", ids).Find(&found).Error
	if err != nil {
		return nil, err
	}
	tracked := make([]uuid.UUID, len(found))
	for i := range found {
		tracked[i] = found[i].ID
	}
	if len(tracked) > 0 {
		_, err = t.stopTrackedVideos(LinkedAccounts(found), "videos.id IN ?", tracked)
	}
	return without(ids, tracked), err
}

// without returns the ids that are not in the list "excluded", in their original order.
func without(ids, excluded []uuid.UUID) []uuid.UUID {
	isExcluded := make(map[uuid.UUID]bool, len(excluded))
	for _, id := range excluded {
		isExcluded[id] = true
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id uuid.UUID) bool { return isExcluded[id] })
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

// StoppedVideos has the numbers of videos of an account whose tracking was stopped.
type StoppedVideos struct {
	Stopped      int64 // videos whose tracking was stopped with the account
	StillTracked int64 // videos that stay tracked, because they were added by their own links
}

// StopAccount stops the tracking of one account, as StopAccounts does. It returns how many videos of the account were stopped, and how many are still
// tracked. It returns false if the account is not tracked.
func (o *Org) StopAccount(ctx context.Context, id uuid.UUID) (videos StoppedVideos, found bool, err error) {
	err = o.changeData(ctx, func(t OrgTx) error {
		untracked, stopped, err := t.stopAccounts([]uuid.UUID{id})
		videos, found = StoppedVideos{Stopped: stopped}, len(untracked) == 0
		if err != nil || !found {
			return err
		}
		return db.Scoped(t.Tx, "videos", o.id).Where("videos.linked_account_id = ? AND NOT videos.removed", id).Count(&videos.StillTracked).Error
	})
	return videos, found, err
}

// StopAccounts stops the tracking of the accounts with the given ids and of their videos, except videos that were added by their own links. It returns
// the ids without a tracked account, in order.
func (o *Org) StopAccounts(ctx context.Context, ids []uuid.UUID) (untracked []uuid.UUID, err error) {
	err = o.changeData(ctx, func(t OrgTx) error {
		untracked, _, err = t.stopAccounts(ids)
		return err
	})
	return untracked, err
}

// stopAccounts does the work of StopAccounts in the transaction t.Tx. It also returns how many videos it stopped.
func (t OrgTx) stopAccounts(ids []uuid.UUID) (untracked []uuid.UUID, stoppedVideos int64, err error) {
	var tracked []uuid.UUID
	if err := db.Scoped(t.Tx, "accounts", t.id).Where("accounts.id IN ? AND accounts.tracked", ids).Order("accounts.id").Pluck("id", &tracked).Error; err != nil {
		return nil, 0, err
	}
	untracked = without(ids, tracked)
	if len(tracked) == 0 {
		return untracked, 0, nil
	}
	err = db.Scoped(t.Tx, "accounts", t.id).Where("accounts.id IN ?", tracked).Updates(setStoppedStatus(map[string]any{"tracked": false, "removed": true})).Error
	if err != nil {
		return nil, 0, err
	}
	if err := queue.Unsubscribe(t.Tx, t.id, "subject_id IN ?", tracked); err != nil {
		return nil, 0, err
	}
	err = t.Tx.Exec("UPDATE organisation_totals SET accounts = accounts - ?, accounts_removed = accounts_removed + ? WHERE organisation_id = ?",
		len(tracked), len(tracked), t.id).Error
	if err != nil {
		return nil, 0, err
	}
	stoppedVideos, err = t.stopTrackedVideos(db.KeysOf(t.id, tracked), "videos.linked_account_id IN ? AND NOT videos.direct", tracked)
	return untracked, stoppedVideos, err
}
