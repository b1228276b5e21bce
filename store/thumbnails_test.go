package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func dueThumbnails(t *testing.T, db *storetest.DB, limit int) (urls []string) {
	t.Helper()
	due, err := db.DueThumbnails(t.Context(), limit)
	require.NoError(t, err)
	for _, thumbnail := range due {
		urls = append(urls, thumbnail.URL)
	}
	return urls
}

// subscribeToVideos adds a subscription for the video of each picture, because only pictures of tracked videos are requested.
func subscribeToVideos(t *testing.T, db *storetest.DB, pictures ...store.Thumbnail) {
	t.Helper()
	for _, p := range pictures {
		db.Exec(t, "INSERT INTO fetch_subscriptions (bucket, source, kind, external_id, organisation_id, subject_id) VALUES (0, ?, 'video', ?, ?, ?)",
			string(p.Platform), p.ExternalID, store.NewID(), store.NewID())
	}
}

func TestRequestThumbnails_skipsVideosThatNoOrganisationTracks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		tracked := store.Thumbnail{Platform: link.TikTok, ExternalID: "1", URL: "https://p16.tiktokcdn.com/1.jpeg"}
		untracked := store.Thumbnail{Platform: link.TikTok, ExternalID: "2", URL: "https://p16.tiktokcdn.com/2.jpeg"}
		subscribeToVideos(t, db, tracked)
		require.NoError(t, db.RequestThumbnails(t.Context(), []store.Thumbnail{untracked, tracked}))
		require.Equal(t, []string{tracked.URL}, dueThumbnails(t, db, 10))
	})
}

func TestThumbnails_areTriedFourTimesAtGrowingIntervals(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		old := store.Thumbnail{Platform: link.TikTok, ExternalID: "1", URL: "https://p16.tiktokcdn.com/old.jpeg"}
		subscribeToVideos(t, db, old)
		require.NoError(t, db.RequestThumbnails(t.Context(), []store.Thumbnail{old}))
		tries := 0
		start := db.Clock.Now()
		var hours []float64
		for range 100 {
			if due := dueThumbnails(t, db, 10); len(due) > 0 {
				require.Equal(t, []string{old.URL}, due)
				tries++
				hours = append(hours, db.Clock.Now().Sub(start).Hours())
			}
			db.Clock.Advance(10 * time.Minute)
		}
		require.Equal(t, 4, tries)
		require.InDeltaSlice(t, []float64{0, 1.0 / 6, 5.0 / 6, 3.5}, hours, 0.01)

		require.NoError(t, db.RequestThumbnails(t.Context(), []store.Thumbnail{old}))
		require.Empty(t, dueThumbnails(t, db, 10), "an address that was tried four times must not be tried again")
		fresh := store.Thumbnail{Platform: link.TikTok, ExternalID: "1", URL: "https://p16.tiktokcdn.com/new.jpeg"}
		require.NoError(t, db.RequestThumbnails(t.Context(), []store.Thumbnail{fresh}))
		require.Equal(t, []string{fresh.URL}, dueThumbnails(t, db, 10))
	})
}

func TestRequestThumbnails_doesNotRequestAPictureAgainIfACopyIsStored(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first := store.Thumbnail{Platform: link.TikTok, ExternalID: "1", URL: "https://p16.tiktokcdn.com/1.jpeg"}
		second := store.Thumbnail{Platform: link.YouTube, ExternalID: "1", URL: "https://i.ytimg.com/vi/1/mqdefault.jpg"}
		subscribeToVideos(t, db, first, second)
		require.NoError(t, db.RequestThumbnails(t.Context(), []store.Thumbnail{first, second}))
		require.Len(t, dueThumbnails(t, db, 1), 1)
		require.Len(t, dueThumbnails(t, db, 5), 1, "a claimed picture must not be claimed again")
		_, err := db.ThumbnailImage(t.Context(), first.Platform, first.ExternalID)
		require.ErrorIs(t, err, store.ErrNotFound)

		require.NoError(t, db.SaveThumbnail(t.Context(), first, []byte("jpeg")))
		image, err := db.ThumbnailImage(t.Context(), first.Platform, first.ExternalID)
		require.NoError(t, err)
		require.Equal(t, "jpeg", string(image))
		_, err = db.ThumbnailImage(t.Context(), second.Platform, second.ExternalID)
		require.ErrorIs(t, err, store.ErrNotFound, "a stored copy must not be returned for the same id on another platform")

		first.URL += "?signature=2"
		require.NoError(t, db.RequestThumbnails(t.Context(), []store.Thumbnail{first}))
		db.Clock.Advance(24 * time.Hour)
		require.Equal(t, []string{second.URL}, dueThumbnails(t, db, 10), "a stored copy must not be fetched again")
	})
}
