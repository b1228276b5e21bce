package ingest

import (
	"slices"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// A source lists an account's newest videos first, usually one page of videos. If more videos were uploaded since the last fetch than fit
// on a page, the collector requests a longer list. A list is called complete if it was long enough to contain all new videos.
// Account.DiscoveredAt is the time of the last complete list.

const (
	maxPinned   = 3  // an account can pin this many videos, of any age, at the top of its list
	minFullPage = 10 // a list with fewer videos contains all videos of the account, because every full page has at least this many
)

// listDepths are the list lengths to request, in order, until a list reaches the last known upload or has fewer videos than requested.
var listDepths = []int{200, 5000}

// fourthOlderVideo returns the index of the fourth older video in the list, or -1 if there are fewer. The first three older videos do not count,
// because they may be pinned to the top of the list. A video is older if it was uploaded before the last complete list. Before the first complete
// list, no video is older.
func (d discovery) fourthOlderVideo(a *store.Account) (int, error) {
	listed := d.outcome.Account.Videos
	if a.DiscoveredAt == nil {
		return -1, nil
	}
	old, undecided := map[string]bool{}, []string{""}
	for _, v := range listed {
		switch {
		case v.UploadedAt != nil && *v.UploadedAt < *a.DiscoveredAt, v.UploadedAt == nil && a.TypeOrDefault() == store.TrackNewOnly: // older videos: uploaded before the last complete list, or without an upload date if only new videos are tracked
			old[v.ID] = true
		default:
			undecided = append(undecided, v.ID)
		}
	}
	if len(old) <= maxPinned {
		// Look up the other videos in the database. A video that was stored before the last complete list is an older video. A video that was
		// stored later may be new, so it does not count as older.
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

// nextDepth returns the length of the next list to request, or 0 if the list in the outcome was long enough. Before the first complete list, the
// tracking type decides how long the list must be. After that, the list must reach back to the last complete list. If it does not, nextDepth returns
// the next length in listDepths.
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

// videosToTrack returns the listed videos that the account's tracking type includes: all videos that were uploaded after tracking began, and, until
// there is a complete list, also the first store.ListDepths videos of the list.
//
// If only new videos are tracked, a video without an upload date is not included. With another tracking type, it is included in each of these cases:
//
//   - All videos are tracked.
//   - There was no complete list yet.
//   - The collector requested one page, which is the default list length.
//   - The index of the video in the list is lower than maxIndex.
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
