package ingest

import (
	"slices"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// A source lists an account's newest videos first, usually one page of videos. If more videos were uploaded since the last fetch than fit
// on a page, the collector requests a longer list. A list is called complete if it was long enough to contain all new videos.
// Account.DiscoveredAt is the time of the last complete list. If a stopped account is tracked again, DiscoveredAt becomes nil, so the next
// complete list counts as the first one.

const (
	maxPinned   = 3  // an account can pin this many videos, of any age, at the top of its list
	minFullPage = 10 // a full page of a source has at least this many videos; a shorter list contains all videos of the account
)

// listDepths are the list lengths to request, in order, until a list reaches the last known upload or has fewer videos than requested.
var listDepths = []int{200, 5000}

// findUnpinnedOldVideo returns the index of the fourth old video in the list, or -1 if the list has fewer than four old videos. A video is old if
// it was uploaded before the last complete list was fetched. If no list was complete yet, no video is old.
//
// The first three old videos do not show how far the list reaches back, because they can be pinned to the top of the list.
func (d discovery) findUnpinnedOldVideo(a *store.Account) (int, error) {
	listed := d.outcome.Account.Videos
	if a.DiscoveredAt == nil {
		return -1, nil
	}
	old, undecided := map[string]bool{}, []string{""}
	for _, v := range listed {
		switch {
		case v.UploadedAt != nil && *v.UploadedAt < *a.DiscoveredAt, v.UploadedAt == nil && a.TypeOrDefault() == store.TrackNewOnly: // a video is old if it was uploaded before the last complete list was fetched; with the tracking type "new_only", a video without an upload date is old too
			old[v.ID] = true
		default:
			undecided = append(undecided, v.ID)
		}
	}
	if len(old) <= maxPinned {
		// Look up the other videos in the database. A video that was stored before the last complete list is old. A video that was stored later may
		// be new, so it does not count as old.
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
		return pinned > maxPinned
	}), nil
}

// nextDepth returns how many videos the collector must request in the account's next list. The number 0 stands for one page. It is returned if
// the present list is long enough, or if the collector has already requested the longest list.
//
// Before the first complete list, the account's tracking type determines the number. Later, if the present list may be too short to contain all new
// videos, the number is the next higher value in listDepths.
func (d discovery) nextDepth(a *store.Account, reach int) int {
	n, requested := len(d.outcome.Account.Videos), d.outcome.Target.Depth
	if a.DiscoveredAt == nil {
		if want := store.ListDepths[a.TypeOrDefault()]; requested < want && n < want {
			return want
		}
		return 0
	}
	if reach >= 0 || d.at <= *a.DiscoveredAt || n < max(requested, minFullPage) {
		return 0
	}
	for _, depth := range listDepths {
		if requested < depth && n < depth {
			return depth
		}
	}
	return 0
}

// videosToTrack returns the listed videos that the account's tracking type includes. Every type includes these videos:
//
//   - the videos that were uploaded after tracking began
//   - before the first complete list: the first videos of the list; for each type, store.ListDepths has their number
//
// Some types also include videos without an upload date:
//
//   - The type "all" includes all of these videos.
//   - Before the first complete list, or if the collector requested only one page, the types "latest_30" and "latest_200" include all of these
//     videos.
//   - Otherwise, the types "latest_30" and "latest_200" include such a video only if its index in the list is lower than maxIndex.
//
// The argument maxIndex is the result of findUnpinnedOldVideo.
func (d discovery) videosToTrack(a *store.Account, maxIndex int) []FoundVideo {
	kind, since := a.TypeOrDefault(), a.CreatedAt
	db.Assign(&since, a.TrackedAt)
	page := a.DiscoveredAt == nil || d.outcome.Target.Depth == 0
	var out []FoundVideo
	for i, v := range d.outcome.Account.Videos {
		first := a.DiscoveredAt == nil && i < store.ListDepths[kind]
		if first || (v.UploadedAt != nil && *v.UploadedAt >= since) ||
			(v.UploadedAt == nil && kind != store.TrackNewOnly && (page || kind == store.TrackAll || i < maxIndex)) {
			out = append(out, v)
		}
	}
	return out
}
