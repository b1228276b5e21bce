package collector

import (
	"context"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
)

// thumbnailBatch is the number of pictures that are claimed at once.
const thumbnailBatch = 10

// requestThumbnails saves the addresses of the pictures of stored videos, which fetchThumbnails fetches.
func (c *Collector) requestThumbnails(ctx context.Context, outcomes []ingest.Outcome) error {
	if c.Thumbnails == nil {
		return nil
	}
	var wanted []store.Thumbnail
	for _, o := range outcomes {
		if o.Facts != nil && o.Facts.ThumbnailURL != nil {
			wanted = append(wanted, store.Thumbnail{Platform: o.Target.Platform, ExternalID: o.Target.ExternalID, URL: *o.Facts.ThumbnailURL})
		}
	}
	return c.Store.RequestThumbnails(ctx, wanted)
}

// fetchThumbnails fetches all pictures that are due, and stores small copies of them.
func (c *Collector) fetchThumbnails(ctx context.Context) error {
	for ctx.Err() == nil {
		due, err := c.Store.DueThumbnails(ctx, thumbnailBatch)
		if err != nil || len(due) == 0 {
			return err
		}
		for _, t := range due {
			image, err := c.Thumbnails.Fetch(ctx, t.Platform, t.URL)
			if err != nil {
				c.Logger.DebugContext(ctx, "cannot fetch a thumbnail", "platform", t.Platform, "id", t.ExternalID, "attempts", t.Attempts, "error", err)
				continue
			}
			if err := c.Store.SaveThumbnail(ctx, t, image); err != nil {
				return err
			}
		}
	}
	return nil
}
