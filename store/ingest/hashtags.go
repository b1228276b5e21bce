package ingest

import (
	"maps"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// Retitled is a video whose title has changed. Before is the text that had the old hashtags: the old title as the source wrote it, or in the form
// of db.FoldText.
type Retitled struct {
	*store.Video
	Before string
}

// SaveHashtags updates the table video_hashtags after the titles of videos have changed.
func SaveHashtags(tx *gorm.DB, videos []Retitled) error {
	outdated := map[uuid.UUID][]uuid.UUID{}
	var rows [][]any
	for _, v := range videos {
		if len(store.Hashtags(v.Before)) > 0 {
			outdated[v.OrganisationID] = append(outdated[v.OrganisationID], v.ID)
		}
		for _, tag := range store.Hashtags(v.Title) {
			rows = append(rows, []any{v.OrganisationID, tag, v.ID})
		}
	}
	for _, org := range db.Distinct(slices.Collect(maps.Keys(outdated))) {
		if err := tx.Exec("DELETE FROM video_hashtags WHERE organisation_id = ? AND video_id IN ?", org, outdated[org]).Error; err != nil {
			return err
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return db.Insert(tx, "video_hashtags", []string{"organisation_id uuid", "tag text", "video_id uuid"}, rows, "")
}
