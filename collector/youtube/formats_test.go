package youtube

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
)

func TestDecodeVideo_returnsCountsIfAnOptionalMemberHasAnUnexpectedType(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)
	for _, members := range []string{
		`"snippet":{"title":7}`, `"snippet":{"publishedAt":1759511051}`, `"snippet":{"channelTitle":[],"channelId":{},"thumbnails":[]}`, `"snippet":"x"`, `"snippet":[]`,
		`"contentDetails":{"duration":58}`, `"contentDetails":{"durationMillis":"x"}`, `"contentDetails":{"contentRating":[]}`, `"contentDetails":{"contentRating":{"ytRating":1}}`, `"contentDetails":7`,
	} {
		r := decodeVideo([]byte(`{"statistics":{"viewCount":"9","likeCount":"2","commentCount":"1"},`+members+`}`), now)
		require.Equal(t, source.OK, r.Class, "%s: %s", members, r.Detail)
		require.Equal(t, []int64{9, 2, 1}, []int64{*r.Facts.Views, *r.Facts.Likes, *r.Facts.Comments})
		require.Nil(t, r.Facts.NotSafe, "an age rating that cannot be read is unknown")
	}
	r := decodeChannel([]byte(`{"snippet":{"title":[],"description":4,"customUrl":{}},"statistics":{"subscriberCount":"77"}}`), "UCz8RrW4eYtN1uXb6KqLcM2g")
	require.Equal(t, source.OK, r.Class, r.Detail)
	require.Equal(t, new(int64(77)), r.Account.Followers)
}
