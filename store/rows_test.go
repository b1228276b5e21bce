package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestListVideos_returnsTheSameValuesAsReadingEachVideo(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.CreateOrgWithData(t, db)
		// In one video, columns of the same type have different values. In another video, many of the columns that can be NULL are NULL.
		db.Exec(t, `UPDATE videos SET song_name = 'song', song_link = 'https://example.com/song', video_length = '58.5', title = 'Título "1" <b>', not_safe = true, private = true,
			hidden_stats = true, ad_info_shop = true, ad_is_ad = true, ad_product_id_shop = 'product', latest_views = 9007199254740993, latest_likes = 2, latest_comments = 3,
			latest_bookmarks = 4, latest_shares = 5, latest_engagement = 6, outlier_multiplier = 0.1, increase_1d = -12.5, increase_7d = 7, increase_14d = 14.25,
			increase_30d = 1e300, views_gained_7d = -8, uploaded_at = '2024-02-29', fetch_reason = 'The source is slow', last_attempt_at = 11, next_fetch_at = 12
			WHERE CAST(id AS text) = (SELECT MIN(CAST(id AS text)) FROM videos WHERE organisation_id = ?)`, o.ID())
		db.Exec(t, `UPDATE videos SET song_name = NULL, uploaded_at = NULL, latest_views = NULL, latest_updated_at = NULL, outlier_multiplier = NULL, linked_account_id = NULL,
			increase_1d = NULL, next_fetch_at = NULL WHERE CAST(id AS text) = (SELECT MAX(CAST(id AS text)) FROM videos WHERE organisation_id = ?)`, o.ID())
		q := storetest.OrderedBy("created_at", true)
		q.IncludeRemoved = true
		page, err := o.ListVideos(t.Context(), q)
		require.NoError(t, err)
		require.Greater(t, len(page.Rows), 1)
		for _, v := range page.Rows {
			single, err := o.Video(t.Context(), store.Ref{ID: v.ID})
			require.NoError(t, err)
			require.Equal(t, single, v)
		}
	})
}
