package ingest

import (
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// addVideoEvents adds the events about the changes of videos. before[i] is the video after[i] before the write.
func (w videoWriter) addVideoEvents(before, after []store.Video) {
	if !w.events.HasEnabledFeed() {
		return
	}
	for i := range after {
		o := w.outcomes[after[i].Key()]
		w.events.AddVideoFetch(&before[i], &after[i], o.Facts != nil && o.Facts.IsRounded())
	}
}

// addStateEvents adds the events about changed fetch statuses. before[i] is the video after[i] before the write. Only their keys and statuses are
// used.
func (w videoWriter) addStateEvents(before, after []store.Video) error {
	if !w.events.HasEnabledFeed() {
		return nil
	}
	changed := map[uuid.UUID]map[uuid.UUID]store.FetchStatus{} // the new statuses, by organisation and video
	for i := range after {
		v := &after[i]
		if v.FetchStatus == before[i].FetchStatus || !w.events.IsRecording(v.OrganisationID) {
			continue
		}
		if changed[v.OrganisationID] == nil {
			changed[v.OrganisationID] = map[uuid.UUID]store.FetchStatus{}
		}
		changed[v.OrganisationID][v.ID] = v.FetchStatus
	}
	for org, statuses := range changed {
		var stored []store.Video
		if err := db.Scoped(w.tx, "videos", org).Where("videos.id IN ?", slices.Collect(maps.Keys(statuses))).Order("videos.id").Find(&stored).Error; err != nil {
			return err
		}
		for i := range stored {
			v := stored[i]
			v.FetchStatus = statuses[v.ID]
			w.events.AddVideoStatus(&stored[i], &v)
		}
	}
	return nil
}
