package ingest

import (
	"slices"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// A source lists an account's newest videos first, usually one page of videos. If more videos were uploaded since the last fetch than fit on
// a page, the collector requests a longer list.

const (
	pinnedAtMost = 3  // an account can pin this many videos, of any age, at the top of its list
	fewListed    = 10 // a list with fewer videos is not a full page, so it contains all videos of the account
)

// listDepths are the list lengths to request, in order, until the list reaches the last known upload or the source returns fewer videos
// than requested.
var listDepths = []int{200, 5000}

// reach returns the index in the list from which on all videos were already found by the last complete list. It ignores pinned videos. It
// returns -1 if there is no such index, because the list is too short.
func (d discovery) reach(a *store.Account) (int, error) {
	listed := d.outcome.Account.Videos
	if a.DiscoveredAt == nil {
		return -1, nil
	}
	old, undecided := map[string]bool{}, []string{""}
	for _, v := range listed {
		switch {
		case v.UploadedAt != nil && *v.UploadedAt < *a.DiscoveredAt, v.UploadedAt == nil && a.TypeOrDefault() == store.TrackNewOnly: // uploaded before the last complete list, or undated in an account that tracks only new videos
			old[v.ID] = true
		default:
			undecided = append(undecided, v.ID)
		}
	}
	if len(old) <= pinnedAtMost {
		// Only videos that were known at the last complete list count. Videos that were added later do not show how far this list goes back.
		var known []string
		err := db.Scoped(d.tx, "videos", d.org).Where("videos.platform = ? AND videos.external_id IN ? AND videos.created_at <= ?", a.Platform, undecided, *a.DiscoveredAt).
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

// missing returns the length of the next list to request, or 0 if this list was long enough. Before the first complete list, it returns the
// list length of the account's tracking type if a shorter list was requested. That happens if the organisation subscribed while a shorter
// list was being fetched. Later it returns the next of listDepths if this list does not go back to the last complete list.
func (d discovery) missing(a *store.Account, reach int) int {
	n, requested := len(d.outcome.Account.Videos), d.outcome.Target.Depth
	if a.DiscoveredAt == nil {
		if want := store.ListDepths[a.TypeOrDefault()]; requested < want && n < want {
			return want
		}
		return 0
	}
	if reach >= 0 || d.at <= *a.DiscoveredAt || n < max(requested, fewListed) {
		return 0
	}
	for _, depth := range listDepths {
		if requested < depth && n < depth {
			return depth
		}
	}
	return 0
}

// wanted returns the listed videos that the account's tracking type includes. Before the first complete list, it includes as many of the
// newest videos as store.ListDepths says. Videos that were uploaded after tracking began are always included.
//
// A video without an upload date is not included if only new videos are tracked. Otherwise, it is included in four cases:
//
//   - All videos are tracked.
//   - There was no complete list before.
//   - The collector requested a list of the usual length.
//   - The video is listed before the index reach.
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
