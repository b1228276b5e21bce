package ingest

import (
	"slices"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// An account's list shows its newest videos first, a page of them as a rule. When more have been uploaded since than a page
// holds, those that fell off it are found by a longer list.

const (
	pinnedAtMost = 3  // videos that an account shows on top of its list, whatever their age
	fewListed    = 10 // fewer are no page of which more could have fallen off
)

// listDepths are the depths of the lists that are asked for, one after the other, while one does not reach back. The last is the end
// of it, and so is a list that is shorter than it was asked to be.
var listDepths = []int{200, 5000}

// reach is the place in the list from which on it shows what was there at the last complete list, past what may be pinned;
// -1 when it does not go back so far.
func (d discovery) reach(a *store.Account) (int, error) {
	listed := d.outcome.Account.Videos
	if a.DiscoveredAt == nil {
		return -1, nil
	}
	old, unsure := map[string]bool{}, []string{""}
	for _, v := range listed {
		switch {
		case v.UploadedAt != nil && *v.UploadedAt < *a.DiscoveredAt, v.UploadedAt == nil && a.TypeOrDefault() == store.TrackNewOnly: // never taken
			old[v.ID] = true
		default:
			unsure = append(unsure, v.ID)
		}
	}
	if len(old) <= pinnedAtMost {
		// What this list itself has brought, or a page before it, proves nothing.
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

// missing is the depth that the next list needs. At first that is what the account's tracking type wants, when the list did not go
// so deep: the organisation joined while another's, less deep, was under way, or nobody had asked for it to be fetched at
// once. Later, it is more than this list's when it does not reach back.
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

// wanted returns which of the listed videos the account's tracking type takes: at first the newest so many, and always
// what was uploaded since it is tracked. What has no upload date was uploaded since when it is on the first page or, in a longer
// list, above what is known.
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
