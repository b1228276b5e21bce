package ingest

import (
	"slices"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// A list of an account's videos is complete if it was long enough to contain all new videos. If one
// page is too short, the collector requests a longer list.

// MaxPinned is the maximum number of videos, of any age, that an account can pin at the top of its list.
const MaxPinned = 3

// minFullPage is the minimum number of videos on a full page of a source. A full page has fewer videos only if it also lists photos or reposts.
const minFullPage = 10

// If a list is too short to reach the last known upload, the next list is requested with the next of these
// lengths.
var listDepths = []int{200, 5000}

// findUnpinnedOldVideo returns the index of the fourth listed video that is older than the last
// complete list, or -1. The first three such videos may be pinned.
func (d accountWriter) findUnpinnedOldVideo(a *store.Account) (int, error) {
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
	if len(old) <= MaxPinned {
		// Look up the other videos in the database. They are old, too, if they were stored before the last
		// complete list, or together with it.
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
		return pinned > MaxPinned
	}), nil
}

// nextDepth returns how many videos the collector must request in the account's next list, or 0 for
// one page. It also returns true if the list has all new videos, as far as the source can list them. oldIndex is the result of
// findUnpinnedOldVideo. fetchedBefore is true if the account has been fetched before.
func (d accountWriter) nextDepth(a *store.Account, oldIndex int, fetchedBefore bool) (depth int, complete bool) {
	n, requested := len(d.outcome.Account.Videos), d.outcome.Target.Depth
	// Before the first complete list since tracking began, the tracking type determines the depth.
	if a.DiscoveredAt == nil {
		want := store.ListDepths[a.TypeOrDefault()]
		if requested < want && n < want {
			return want, false
		}
		// If the budget ended the list, request the list once more, at the next fetch. Do not request it more often: the list can be longer than the
		// budget, and would then be requested at every fetch.
		return 0, n >= want || !d.outcome.Account.Unfinished || fetchedBefore
	}
	if oldIndex >= 0 || d.at <= *a.DiscoveredAt {
		return 0, true
	}
	if f := d.outcome.Account; n < max(requested, minFullPage) {
		complete := !f.ListContinues || f.CompleteSince != nil && *f.CompleteSince < *a.DiscoveredAt
		// Some accounts publish hardly any videos, but many photos or reposts. For them, request only the shortest of listDepths, because the next one
		// would cost many calls at every fetch. If the budget ended the list, request the list again at the next fetch.
		if complete || requested >= listDepths[0] {
			return 0, complete || !f.Unfinished
		}
	}
	// The list may be too short to contain all new videos.
	for _, depth := range listDepths {
		if requested < depth && n < depth {
			return depth, false
		}
	}
	return 0, true
}

// videosToTrack returns the listed videos that the account's tracking type includes. The argument
// oldIndex is the result of findUnpinnedOldVideo.
func (d accountWriter) videosToTrack(a *store.Account, oldIndex int) []FoundVideo {
	kind, since := a.TypeOrDefault(), a.CreatedAt
	db.Assign(&since, a.TrackedAt)
	acceptUndated := a.DiscoveredAt == nil || d.outcome.Target.Depth == 0 // videos without an upload date count as new
	var out []FoundVideo
	for i, v := range d.outcome.Account.Videos {
		// Before any complete list has been fetched, the tracking type determines how many videos at the start
		// of the list are included.
		first := a.DiscoveredAt == nil && i < store.ListDepths[kind]
		// A longer list can contain, at or after oldIndex, old videos that have no upload date. If oldIndex is -1, all videos of the list are new, except
		// known videos that may be pinned.
		if first || (v.UploadedAt != nil && *v.UploadedAt >= since) ||
			(v.UploadedAt == nil && kind != store.TrackNewOnly && (acceptUndated || kind == store.TrackAll || oldIndex < 0 || i < oldIndex)) {
			out = append(out, v)
		}
	}
	return out
}
