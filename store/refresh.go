package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/link"
)

// RefreshPause is how long after a fetch the next one can be asked for.
const RefreshPause = 4 * time.Hour

// Refreshed says whether a refresh was scheduled or is not due yet.
type Refreshed struct {
	Scheduled bool
	UpdatedAt *Instant // the last fetch that succeeded
	After     Instant  // when a refresh can be asked for, when it was not scheduled
}

// RefreshVideo asks for a video to be fetched now. ErrNotFound when it is not being tracked.
func (o *Org) RefreshVideo(ctx context.Context, ref VideoRef) (Refreshed, error) {
	v, err := o.Video(ctx, ref)
	if err != nil {
		return Refreshed{}, err
	}
	if v.Removed {
		return Refreshed{}, notFound("video", ref.String())
	}
	e := queueEntry{Source: v.Platform, Kind: targetVideo, ExternalID: v.ExternalID, Handle: v.Username, Link: v.Link, Subject: v.ID}
	return o.refresh(ctx, v.LatestUpdatedAt, e, func(tx *gorm.DB) error {
		return o.lockTracked(tx, "videos", "NOT videos.removed", v.ID, notFound("video", ref.String()))
	})
}

// RefreshAccount asks for an account to be fetched now. ErrNotFound when it is not being tracked.
func (o *Org) RefreshAccount(ctx context.Context, ref AccountRef) (Refreshed, error) {
	a, err := o.Account(ctx, ref)
	if err != nil {
		return Refreshed{}, err
	}
	if !a.Tracked {
		return Refreshed{}, notFound("account", ref.String())
	}
	e := queueEntry{Source: a.Platform, Kind: targetAccount, ExternalID: accountTarget(&a), Handle: a.Username, Link: a.Link, Subject: a.ID}
	// Its target may have been made under the handle, before the platform's own id was known.
	subscribed, err := o.subscribedAs(ctx, targetAccount, a.Platform, a.ID)
	if err != nil {
		return Refreshed{}, err
	}
	if subscribed != "" {
		e.ExternalID = subscribed
	}
	return o.refresh(ctx, a.CheckedAt, e, func(tx *gorm.DB) error {
		return o.lockTracked(tx, "accounts", "accounts.tracked", a.ID, notFound("account", ref.String()))
	})
}

func (o *Org) subscribedAs(ctx context.Context, kind Kind, p link.Platform, subject uuid.UUID) (string, error) {
	var ids []string
	err := o.s.read.WithContext(ctx).Raw(`SELECT external_id FROM fetch_subscriptions WHERE organisation_id = ? AND subject_id = ? AND kind = ? AND source = ?`,
		o.id, subject, kind, p).Scan(&ids).Error
	if err != nil || len(ids) == 0 {
		return "", translate(err)
	}
	return ids[0], nil
}

// lockTracked makes a stop wait for the transaction, and returns missing where one was faster: what is enqueued after it
// would be fetched for ever.
func (o *Org) lockTracked(tx *gorm.DB, table, tracked string, id uuid.UUID, missing error) error {
	q := scoped(tx, table, o.id).Where(table+".id = ? AND "+tracked, id)
	if o.s.dialect.skipLocked() {
		q = q.Clauses(forUpdate)
	}
	var found []uuid.UUID
	if err := q.Pluck("id", &found).Error; err != nil || len(found) > 0 {
		return err
	}
	return missing
}

func (o *Org) refresh(ctx context.Context, updated *Instant, e queueEntry, lock func(*gorm.DB) error) (Refreshed, error) {
	now := o.s.now()
	if updated != nil && now < updated.Add(RefreshPause) {
		return Refreshed{UpdatedAt: updated, After: updated.Add(RefreshPause)}, nil
	}
	org, err := o.s.Organisation(ctx, o.id)
	if err != nil {
		return Refreshed{}, err
	}
	e.Lane, e.BaseLane, e.NextAt = LaneInteractive, LaneOf(org), now
	err = o.change(ctx, func(tx *gorm.DB) error {
		if err := lock(tx); err != nil {
			return err
		}
		return enqueue(tx, o.id, []queueEntry{e}, now)
	})
	if err != nil {
		return Refreshed{}, err
	}
	return Refreshed{Scheduled: true, UpdatedAt: updated}, nil
}
