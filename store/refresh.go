package store

import (
	"context"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Refreshed is the result of RefreshVideo and RefreshAccount.
type Refreshed struct {
	Scheduled bool        // a fetch was scheduled
	UpdatedAt *db.Instant // time of the last successful fetch; nil before the first one
	After     db.Instant  // time from which a refresh is allowed again; set only if Scheduled is false
}

// RefreshVideo schedules an immediate fetch of a video. It schedules nothing if the last successful fetch was less than queue.RefreshPause ago. It
// returns ErrNotFound if the video is not tracked.
func (o *Org) RefreshVideo(ctx context.Context, ref VideoRef) (Refreshed, error) {
	v, err := o.Video(ctx, ref)
	if err != nil {
		return Refreshed{}, err
	}
	if v.Removed {
		return Refreshed{}, db.NotFound("video", ref.String())
	}
	e := queue.Entry{Source: v.Platform, Kind: queue.KindVideo, ExternalID: v.ExternalID, Handle: v.Username, Link: v.Link, Subject: v.ID}
	return o.enqueueRefresh(ctx, v.LatestUpdatedAt, e, func(tx *gorm.DB) error {
		return o.requireTracked(tx, "videos", "NOT videos.removed", v.ID, db.NotFound("video", ref.String()))
	})
}

// RefreshAccount schedules an immediate fetch of an account. It schedules nothing if the last successful fetch was less than queue.RefreshPause ago.
// It returns ErrNotFound if the account is not tracked.
func (o *Org) RefreshAccount(ctx context.Context, ref AccountRef) (Refreshed, error) {
	a, err := o.Account(ctx, ref)
	if err != nil {
		return Refreshed{}, err
	}
	if !a.Tracked {
		return Refreshed{}, db.NotFound("account", ref.String())
	}
	e := queue.Entry{Source: a.Platform, Kind: KindAccount, ExternalID: accountTarget(&a), Handle: a.Username, Link: a.Link, Subject: a.ID}
	// In the fetch queue, the name of an account can still be its handle, if the account was added
	// before the platform's id was known.
	subscribed, err := o.findTargetName(ctx, KindAccount, a.Platform, a.ID)
	if err != nil {
		return Refreshed{}, err
	}
	if subscribed != "" {
		e.ExternalID = subscribed
	}
	return o.enqueueRefresh(ctx, a.CheckedAt, e, func(tx *gorm.DB) error {
		return o.requireTracked(tx, "accounts", "accounts.tracked", a.ID, db.NotFound("account", ref.String()))
	})
}

// findTargetName returns the name that a video or account has in the fetch queue. It returns "" if
// the organisation has no subscription to the video or account.
func (o *Org) findTargetName(ctx context.Context, kind queue.Kind, p link.Platform, subjectID uuid.UUID) (string, error) {
	var ids []string
	err := o.s.db.Read(ctx).Raw(`SELECT external_id FROM fetch_subscriptions WHERE organisation_id = ? AND subject_id = ? AND kind = ? AND source = ?`,
		o.id, subjectID, kind, p).Scan(&ids).Error
	if err != nil || len(ids) == 0 {
		return "", db.Translate(err)
	}
	return ids[0], nil
}

// requireTracked returns errMissing if the row is not tracked any more. It must be called after the transaction
// has raised the organisation's version. A concurrent stop then waits for this transaction.
func (o *Org) requireTracked(tx *gorm.DB, table, trackedCondition string, id uuid.UUID, errMissing error) error {
	var found []uuid.UUID
	if err := db.Scoped(tx, table, o.id).Where(table+".id = ? AND "+trackedCondition, id).Pluck("id", &found).Error; err != nil || len(found) > 0 {
		return err
	}
	return errMissing
}

// enqueueRefresh adds a video or account to the fetch queue, due now, with the highest priority. It
// adds nothing if lastFetch is less than queue.RefreshPause ago.
func (o *Org) enqueueRefresh(ctx context.Context, lastFetch *db.Instant, e queue.Entry, checkTracked func(*gorm.DB) error) (Refreshed, error) {
	now := o.s.db.Now()
	// lastFetch is the time of the last successful fetch, or nil if there was none.
	if lastFetch != nil && now < lastFetch.Add(queue.RefreshPause) {
		return Refreshed{UpdatedAt: lastFetch, After: lastFetch.Add(queue.RefreshPause)}, nil
	}
	org, err := o.s.Organisation(ctx, o.id)
	if err != nil {
		return Refreshed{}, err
	}
	e.Lane, e.BaseLane, e.NextAt = queue.LaneInteractive, LaneOf(org), now
	err = o.changeData(ctx, func(tx *gorm.DB) error {
		if err := checkTracked(tx); err != nil {
			return err
		}
		return queue.Enqueue(tx, o.id, []queue.Entry{e}, now)
	})
	if err != nil {
		return Refreshed{}, err
	}
	return Refreshed{Scheduled: true, UpdatedAt: lastFetch}, nil
}
