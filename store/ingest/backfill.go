package ingest

import (
	"slices"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// An account's list shows its newest videos first, usually one page of them. If more videos were uploaded since the last fetch than a page
// holds, the collector requests a longer list.

const (
	pinnedAtMost = 3  // an account can show this many videos at the top of its list, whatever their age
	fewListed    = 10 // a shorter list cannot be a full page, so nothing is missing from it
)

// listDepths are the list lengths to request, in order, until the list reaches the last known upload or the source returns fewer videos
// than requested.
var listDepths = []int{200, 5000}

// reach returns the index in the list from which all videos were in the last complete list, not counting pinned videos. It returns -1 if
// the list does not go back that far.
func (d discovery) reach(a *store.Account) (int, error) {
	listed := d.outcome.Account.Videos
	if a.DiscoveredAt == nil {
		return -1, nil
	}
	old, unsure := map[string]bool{}, []string{""}
	for _, v := range listed {
		switch {
		case v.UploadedAt != nil && *v.UploadedAt < *a.DiscoveredAt, v.UploadedAt == nil && a.TypeOrDefault() == store.TrackNewOnly: // uploaded before the last list, or never tracked
			old[v.ID] = true
		default:
			unsure = append(unsure, v.ID)
		}
	}
	if len(old) <= pinnedAtMost {
		// Videos that this list or an earlier page of it has added do not show how far the list reaches.
		var known []string
		err := db.Scoped(d.tx, "videos", d.org).Where("videos.platform = ? AND videos.external_id IN ? AND videos.created_at <= ?", a.Platform, unsure, *a.DiscoveredAt).
			Pluck("external_id", &known).Error
		if err != nil {
			return 0, err
		}
		for _, id := range known {
			old[id] = true
		}
	}
	pinned := 0
	return slices.IndexFunc(listed, func(v FoundVideo) bool {
		if old[v.ID] {
			pinned++
		}
		return pinned > pinnedAtMost
	}), nil
}

// missing returns the depth of the next list, or 0 if no deeper list is needed. At first it is the depth of the account's tracking type,
// if this list was requested with less depth. That happens if the organisation subscribed while a shorter list was being fetched. Later it
// is the next of listDepths, if this list does not reach the last complete list.
func (d discovery) missing(a *store.Account, reach int) int {
	n, asked := len(d.outcome.Account.Videos), d.outcome.Target.Depth
	if a.DiscoveredAt == nil {
		if want := store.ListDepths[a.TypeOrDefault()]; asked < want && n < want {
			return want
		}
		return 0
	}
	if reach >= 0 || d.at <= *a.DiscoveredAt || n < max(asked, fewListed) {
		return 0
	}
	for _, depth := range listDepths {
		if asked < depth && n < depth {
			return depth
		}
	}
	return 0
}

// wanted returns the listed videos that the account's tracking type includes: at first its newest videos, and always videos that were
// uploaded since the account is tracked. A video without an upload date counts as new if it is on the first page, or before the first
// known video of a longer list.
func (d discovery) wanted(a *store.Account, reach int) []FoundVideo {
	kind, since := a.TypeOrDefault(), a.CreatedAt
	db.Assign(&since, a.TrackedAt)
	page := a.DiscoveredAt == nil || d.outcome.Target.Depth == 0
	var out []FoundVideo
	for i, v := range d.outcome.Account.Videos {
		first := a.DiscoveredAt == nil && i < store.ListDepths[kind]
		if first || (v.UploadedAt != nil && *v.UploadedAt >= since) ||
			(v.UploadedAt == nil && kind != store.TrackNewOnly && (page || kind == store.TrackAll || i < reach)) {
			out = append(out, v)
		}
	}
	return out
}
