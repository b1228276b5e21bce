package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Thumbnail is the picture of a video at its platform. All organisations that track the video share one stored copy of the picture.
type Thumbnail struct {
	Platform   link.Platform `gorm:"primaryKey"`
	ExternalID string        `gorm:"primaryKey"` // the platform's own id of the video
	URL        string        // the latest address that a source gave before a copy of the picture was stored
	Attempts   int           // number of times that DueThumbnails has returned this address
	NextAt     *db.Instant   // when the picture is fetched next; nil if it is not fetched any more
}

const (
	// thumbnailAttempts is the maximum number of attempts to fetch a picture from one address. It is
	// limited because most addresses stop working after some days.
	thumbnailAttempts = 4
	// thumbnailRetry is the time between the first and the second attempt. Each later pause is four times as long as the previous pause.
	thumbnailRetry = 10 * time.Minute
)

// RequestThumbnails saves addresses of pictures, so that DueThumbnails returns these pictures. It skips a
// picture that was already fetched or that has the same address in the database. It also skips videos that no
// organisation tracks any more. Pass at most db.InsertChunk pictures.
func (s *Store) RequestThumbnails(ctx context.Context, thumbnails []Thumbnail) error {
	if len(thumbnails) == 0 {
		return nil
	}
	wanted := make([][]any, len(thumbnails))
	for i, t := range thumbnails {
		wanted[i] = []any{t.Platform, t.ExternalID, t.URL}
	}
	list, args := db.WithRows(s.db.Read(ctx), "wanted", []string{"platform text", "external_id text", "url text"}, wanted)
	var fresh []Thumbnail
	err := s.db.Read(ctx).Raw(list+`SELECT wanted.platform, wanted.external_id, wanted.url FROM wanted WHERE NOT EXISTS
 (SELECT 1 FROM thumbnails t WHERE t.platform = wanted.platform AND t.external_id = wanted.external_id AND (t.image IS NOT NULL OR t.url = wanted.url))
 ORDER BY wanted.platform, wanted.external_id`, args...).Find(&fresh).Error
	if err != nil || len(fresh) == 0 {
		return db.Translate(err)
	}
	now := s.db.Now()
	for i := range fresh {
		fresh[i].NextAt = &now
	}
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		tracked, err := lockTrackedPictures(tx, fresh)
		if err != nil || len(tracked) == 0 {
			return err
		}
		return tx.Clauses(clause.OnConflict{
			Columns:   db.Columns([]string{"platform", "external_id"}),
			DoUpdates: clause.AssignmentColumns([]string{"url", "attempts", "next_at"}),
			Where:     clause.Where{Exprs: []clause.Expression{gorm.Expr("thumbnails.image IS NULL")}},
		}).Create(&tracked).Error
	})
}

// lockTrackedPictures returns the pictures of those videos that an organisation tracks. It locks the targets of the videos. So the deletion of an
// organisation, which deletes its subscriptions before its pictures, waits until the pictures are inserted.
func lockTrackedPictures(tx *gorm.DB, pictures []Thumbnail) (tracked []Thumbnail, err error) {
	// Lock the targets in the order of Key.Compare, as all transactions do.
	slices.SortFunc(pictures, func(a, b Thumbnail) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.ExternalID, b.ExternalID))
	})
	rows := make([][]any, len(pictures))
	for i, p := range pictures {
		rows[i] = []any{queue.Bucket, p.Platform, queue.KindVideo, p.ExternalID, i}
	}
	list, args := db.WithRows(tx, "wanted", []string{"bucket smallint", "source text", "kind text", "external_id text", "place integer"}, rows)
	err = db.LockRows(tx, list+`SELECT wanted.place FROM wanted CROSS JOIN fetch_targets t WHERE `+queue.SameTarget("t", "wanted")+`
 ORDER BY wanted.place`, "t", args...)
	if err != nil {
		return nil, err
	}
	var subscribed []queue.FetchSubscription
	err = tx.Raw(list+`SELECT DISTINCT s.source, s.external_id FROM wanted CROSS JOIN fetch_subscriptions s WHERE `+queue.SameTarget("s", "wanted"), args...).Find(&subscribed).Error
	isTracked := make(map[string]bool, len(subscribed))
	for _, s := range subscribed {
		isTracked[queue.TargetKey(s.Platform, s.ExternalID)] = true
	}
	return slices.DeleteFunc(slices.Clone(pictures), func(p Thumbnail) bool { return !isTracked[queue.TargetKey(p.Platform, p.ExternalID)] }), err
}

// DueThumbnails returns at most "limit" pictures that are due, and sets when each is due again. The
// caller must call SaveThumbnail after a successful fetch.
func (s *Store) DueThumbnails(ctx context.Context, limit int) ([]Thumbnail, error) {
	now := s.db.Now()
	const due = "SELECT platform, external_id, url, attempts FROM thumbnails WHERE next_at <= ? ORDER BY next_at LIMIT ?"
	var found []Thumbnail
	if err := s.db.Read(ctx).Raw(due, now, limit).Scan(&found).Error; err != nil || len(found) == 0 { // this first query takes no locks, because usually no picture is due
		return nil, db.Translate(err)
	}
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		found = nil
		if err := tx.Raw(due+db.ForUpdateSkipLocked(tx, "thumbnails"), now, limit).Scan(&found).Error; err != nil {
			return err
		}
		for i := range found {
			t := &found[i]
			t.NextAt = nil
			if t.Attempts++; t.Attempts < thumbnailAttempts {
				t.NextAt = new(now.Add(thumbnailRetry << (2 * (t.Attempts - 1))))
			}
			err := tx.Exec("UPDATE thumbnails SET attempts = ?, next_at = ? WHERE platform = ? AND external_id = ?", t.Attempts, t.NextAt, t.Platform, t.ExternalID).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
	return found, db.Translate(err)
}

// SaveThumbnail stores the copy of a picture, a JPEG.
func (s *Store) SaveThumbnail(ctx context.Context, t Thumbnail, image []byte) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE thumbnails SET image = ?, next_at = NULL WHERE platform = ? AND external_id = ?", image, t.Platform, t.ExternalID).Error
	})
}

// ThumbnailImage returns the stored copy of a video's picture, a JPEG, or ErrNotFound if there is none.
func (s *Store) ThumbnailImage(ctx context.Context, p link.Platform, externalID string) ([]byte, error) {
	var images [][]byte
	err := s.db.Read(ctx).Raw("SELECT image FROM thumbnails WHERE platform = ? AND external_id = ? AND image IS NOT NULL", p, externalID).Scan(&images).Error
	switch {
	case err != nil:
		return nil, db.Translate(err)
	case len(images) == 0:
		return nil, db.NotFound("thumbnail", externalID)
	}
	return images[0], nil
}
