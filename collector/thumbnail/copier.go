package thumbnail

import (
	"context"
	"log/slog"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
)

// batchSize is the maximum number of pictures that CopyDuePictures claims in one step.
const batchSize = 10

// Copier copies the pictures of videos into the store. If Fetcher is nil, SaveAddresses does nothing, and CopyDuePictures must not be called.
type Copier struct {
	Fetcher *Fetcher
	Store   *store.Store
	Logger  *slog.Logger
}

// SaveAddresses takes the addresses of pictures from the outcomes of fetched videos, and stores them. CopyDuePictures copies these pictures later.
func (c Copier) SaveAddresses(ctx context.Context, outcomes []ingest.Outcome) error {
	if c.Fetcher == nil {
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

// CopyDuePictures fetches all pictures whose copy is due, and stores small copies of them. If a picture cannot be fetched, a later call tries
// again.
func (c Copier) CopyDuePictures(ctx context.Context) error {
	for ctx.Err() == nil {
		due, err := c.Store.DueThumbnails(ctx, batchSize)
		if err != nil || len(due) == 0 {
			return err
		}
		for _, t := range due {
			picture, err := c.Fetcher.Fetch(ctx, t.Platform, t.URL)
			if err != nil {
				c.Logger.DebugContext(ctx, "cannot fetch a thumbnail", "platform", t.Platform, "id", t.ExternalID, "attempts", t.Attempts, "error", err)
				continue
			}
			// A fetched picture is stored even if the collector is stopping.
			if err := c.Store.SaveThumbnail(context.WithoutCancel(ctx), t, picture); err != nil {
				return err
			}
		}
	}
	return nil
}
