package ingest

import (
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
		w.events.AddVideoFetch(&before[i], &after[i], o.Facts != nil && o.Facts.Rounded)
	}
}

// compareStates copies the present fetch statuses of the videos. The function that it returns adds
// events about the statuses that have changed since then.
func (w videoWriter) compareStates(videos []store.Video) (addEvents func() error) {
	if !w.events.HasEnabledFeed() {
		return func() error { return nil }
	}
	// Only the keys and the statuses of the videos are used.
	before := make([]store.FetchStatus, len(videos))
	for i := range videos {
		before[i] = videos[i].FetchStatus
	}
	return func() error {
		changed := map[uuid.UUID]map[uuid.UUID]store.FetchStatus{} // the new statuses, by organisation and video
		for i := range videos {
			v := &videos[i]
			if v.FetchStatus == before[i] || !w.events.IsRecording(v.OrganisationID) {
				continue
			}
			if changed[v.OrganisationID] == nil {
				changed[v.OrganisationID] = map[uuid.UUID]store.FetchStatus{}
			}
			changed[v.OrganisationID][v.ID] = v.FetchStatus
		}
		for org, statuses := range changed {
			ids := make([]uuid.UUID, 0, len(statuses))
			for id := range statuses {
				ids = append(ids, id)
			}
			var stored []store.Video
			if err := db.Scoped(w.tx, "videos", org).Where("videos.id IN ?", ids).Order("videos.id").Find(&stored).Error; err != nil {
				return err
			}
			for i := range stored {
				after := stored[i]
				after.FetchStatus = statuses[after.ID]
				w.events.AddVideoStatus(&stored[i], &after)
			}
		}
		return nil
	}
}
