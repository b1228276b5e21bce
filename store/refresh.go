package store

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// ErrNotFetched is the error of a refresh of a video or account that is saved but not fetched, because the organisation has no
// subscription.
var ErrNotFetched = errors.New("the video or account is saved but not fetched, because the organisation has no subscription")

// ErrHandleLost is the error of a refresh of an account without an id, whose handle now belongs to another account.
var ErrHandleLost = errors.New("the handle of the account belongs to another account now, and the id of the account is not known")

// Refreshed is the result of RefreshVideo and RefreshAccount.
type Refreshed struct {
	Scheduled   bool        // a fetch was scheduled
	Unsupported string      // why no configured source can fetch the video or account; if it is not "", nothing was scheduled
	UpdatedAt   *db.Instant // time of the last successful fetch; nil before the first one
	After       db.Instant  // time from which a refresh is allowed again; set only if the last fetch was too recent
}

// RefreshVideo schedules an immediate fetch of a video. It returns ErrNotFound if the video is not tracked, and ErrNotFetched if it is saved but not
// fetched. It schedules nothing in two cases: the last successful fetch was less than queue.RefreshPause ago, or no configured source can fetch the
// video. The function `unsupported` returns why no configured source can fetch the video, or "" if a source can fetch it. The function can be nil.
func (o *Org) RefreshVideo(ctx context.Context, ref Ref, unsupported func(link.Link) string) (Refreshed, error) {
	v, err := o.Video(ctx, ref)
	if err != nil {
		return Refreshed{}, err
	}
	if v.Removed {
		return Refreshed{}, db.NotFound("video", ref.String())
	}
	e := queue.Entry{Platform: v.Platform, Kind: queue.KindVideo, ExternalID: v.ExternalID, Handle: v.Username, Link: v.Link, Subject: v.ID,
		Known: v.Latest}
	return o.enqueueRefresh(ctx, v.LatestUpdatedAt, e, unsupported, func(t OrgTx) error {
		return t.requireTracked("videos", "NOT videos.removed", v.ID, db.NotFound("video", ref.String()))
	})
}

// RefreshAccount schedules an immediate fetch of an account. It returns ErrNotFound if the account is not tracked, and ErrNotFetched if it is saved
// but not fetched. For an account without an id whose handle now belongs to another account, it returns ErrHandleLost. RefreshAccount schedules
// nothing in two cases: the last successful fetch was less than queue.RefreshPause ago, or no configured source can fetch the account. The function
// `unsupported` returns why no configured source can fetch the account, or "" if a source can fetch it. The function can be nil.
func (o *Org) RefreshAccount(ctx context.Context, ref Ref, unsupported func(link.Link) string) (Refreshed, error) {
	a, err := o.Account(ctx, ref)
	if err != nil {
		return Refreshed{}, err
	}
	if !a.Tracked {
		return Refreshed{}, db.NotFound("account", ref.String())
	}
	e := queue.Entry{Platform: a.Platform, Kind: queue.KindAccount, ExternalID: targetExternalID(&a), Handle: a.Username, Link: a.Link, Subject: a.ID,
		Known: db.Counts{Views: a.LatestFollowersCount}}
	if a.ExternalID == nil && a.SourceID == nil && !a.HandleCurrent {
		e.ExternalID = "" // the handle now belongs to another account, and so does the target with this handle
	}
	return o.enqueueRefresh(ctx, a.CheckedAt, e, unsupported, func(t OrgTx) error {
		return t.requireTracked("accounts", "accounts.tracked", a.ID, db.NotFound("account", ref.String()))
	})
}

// findTargetName returns the name that the video or account of an entry has in the fetch queue. It returns "" if the video or
// account is not in the queue.
func (t OrgTx) findTargetName(e queue.Entry) (string, error) {
	var ids []string
	err := t.Tx.Raw(`SELECT external_id FROM fetch_subscriptions WHERE organisation_id = ? AND subject_id = ? AND kind = ? AND source = ?`,
		t.id, e.Subject, e.Kind, e.Platform).Scan(&ids).Error
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}

// requireTracked returns errMissing if the row is not tracked any more. It must be called after the transaction
// has raised the organisation's version. A concurrent stop then waits for this transaction.
func (t OrgTx) requireTracked(table, trackedCondition string, id uuid.UUID, errMissing error) error {
	var found []uuid.UUID
	if err := db.Scoped(t.Tx, table, t.id).Where(table+".id = ? AND "+trackedCondition, id).Pluck("id", &found).Error; err != nil || len(found) > 0 {
		return err
	}
	return errMissing
}

// enqueueRefresh adds a video or account to the fetch queue, due now, with the highest priority. It
// adds nothing if lastFetch is less than queue.RefreshPause ago, or if `unsupported` returns a reason.
func (o *Org) enqueueRefresh(ctx context.Context, lastFetch *db.Instant, e queue.Entry, unsupported func(link.Link) string, checkTracked func(OrgTx) error) (Refreshed, error) {
	now := o.s.db.Now()
	// lastFetch is the time of the last successful fetch, or nil if there was none.
	if lastFetch != nil && now < lastFetch.Add(queue.RefreshPause) {
		return Refreshed{UpdatedAt: lastFetch, After: lastFetch.Add(queue.RefreshPause)}, nil
	}
	if unsupported != nil {
		l := link.Link{Platform: e.Platform, Kind: link.Kind(e.Kind), ID: e.ExternalID, Handle: e.Handle, Canonical: e.Link}
		if reason := unsupported(l); reason != "" {
			return Refreshed{Unsupported: reason, UpdatedAt: lastFetch}, nil
		}
	}
	err := o.changeData(ctx, func(t OrgTx) error {
		if err := checkTracked(t); err != nil {
			return err
		}
		org, err := ReadOrganisation(t.Tx, o.id)
		if err != nil {
			return err
		}
		name, err := t.findTargetName(e)
		switch {
		case err != nil:
			return err
		case name != "":
			// The name of an account can still be its handle, if the account was added before the platform's id was known.
			e.ExternalID = name
		case e.ExternalID == "":
			return ErrHandleLost
		case org.hasNoSubscription():
			return ErrNotFetched
		case e.Kind == queue.KindVideo:
			// The subscription has just begun, and the video is not in the queue yet.
			if err := db.Scoped(t.Tx, "videos", o.id).Where("videos.id = ?", e.Subject).Update("pending", false).Error; err != nil {
				return err
			}
		}
		e.Lane, e.BaseLane, e.NextAt = queue.LaneInteractive, LaneOf(org), t.Now
		if name != "" {
			return queue.Enqueue(t.Tx, o.id, []queue.Entry{e}, t.Now)
		}
		_, err = t.enqueueAccounts([]queue.Entry{e}, e.BaseLane)
		return err
	})
	if err != nil {
		return Refreshed{}, err
	}
	return Refreshed{Scheduled: true, UpdatedAt: lastFetch}, nil
}
