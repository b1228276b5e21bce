package store

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// StopVideos stops the tracking of videos, but keeps their history. It returns the refs without a
// tracked video, in order. If allOrNothing is true, such refs prevent all changes.
func (o *Org) StopVideos(ctx context.Context, refs []Ref, allOrNothing bool) (unmatched []Ref, err error) {
	err = o.changeData(ctx, func(tx *gorm.DB) error {
		unmatched, err = Tracking{Org: o, Tx: tx, Now: o.s.db.Now()}.Stop(refs, allOrNothing)
		return err
	})
	return unmatched, err
}

// Stop does the work of StopVideos in the transaction t.Tx.
func (t Tracking) Stop(refs []Ref, allOrNothing bool) (unmatched []Ref, err error) {
	unmatched, ids, accounts, err := t.trackedIDs(refs)
	if err != nil || len(ids) == 0 || (allOrNothing && len(unmatched) > 0) {
		return unmatched, err
	}
	_, err = t.stopTrackedVideos(accounts, "videos.id IN ?", ids)
	return unmatched, err
}

// stopTrackedVideos stops the tracked videos that match a condition, and recomputes the statistics of the given accounts. It returns the number of
// these videos. The caller must pass the accounts of all videos that match.
func (t Tracking) stopTrackedVideos(accounts []db.RowKey, condition string, args ...any) (int64, error) {
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
func (t Tracking) recordRestart(ids []uuid.UUID) error {
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
func (t Tracking) trackedIDs(refs []Ref) (unmatched []Ref, ids []uuid.UUID, accounts []db.RowKey, err error) {
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
