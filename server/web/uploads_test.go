package web

import (
	"testing"
	"time"

	openapi_types "github.com/oapi-codegen/runtime/types"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
)

// uploadedVideo returns a video that was uploaded on the given day and has the given views.
func uploadedVideo(day string, views int64) client.Video {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	return client.Video{UploadedAt: &openapi_types.Date{Time: at}, LatestViews: &views}
}

func TestUploadsDiagram_placesVideosByDayAndViews(t *testing.T) {
	t.Parallel()
	u := diagramOfUploads([]client.Video{ // 2026-11-02 is a Monday
		uploadedVideo("2026-11-18", 5000), uploadedVideo("2026-11-08", 90), uploadedVideo("2026-11-02", 100), uploadedVideo("2026-11-08", 110),
		{LatestViews: new(int64(7))}, {UploadedAt: &openapi_types.Date{Time: time.Unix(0, 0)}},
	})
	require.Equal(t, "2026-11-02 2026-11-18", u.First.String()+" "+u.Last.String())
	require.EqualValues(t, 90, u.Low)
	require.EqualValues(t, 5000, u.High)
	require.Equal(t, 3, u.Days)
	require.Nil(t, u.P10, "P10 must be nil, because four videos are too few for percentiles")
	require.Len(t, u.Dots, 4, "videos whose upload day or views are unknown must be left out")
	for n := range u.Dots[1:] {
		require.LessOrEqual(t, u.Dots[n].X, u.Dots[n+1].X, "the dots must be ordered by day")
	}
	require.Equal(t, []bool{false, false, false, true}, []bool{u.Dots[0].High, u.Dots[1].High, u.Dots[2].High, u.Dots[3].High}, "5,000 views must make the video an outlier, because they are more than ten times the median of 105")
	require.Less(t, u.Dots[3].Y, u.Median, "the dot of a video with more views than the median must be above the line of the median")
	require.InDelta(t, uploadsPadding, u.Dots[0].X, 0.01)
	require.Len(t, u.Columns, 2, "a week without uploads must have no column")
	require.Equal(t, []int{3, 1}, []int{u.Columns[0].Uploads, u.Columns[1].Uploads})
	require.Equal(t, "2026-11-02", u.Columns[0].Week.String())
	require.InDelta(t, u.Columns[0].Height, 3*u.Columns[1].Height, 0.01)
}

func TestUploadsDiagram_needsThreeVideosForADiagramAndTenForPercentiles(t *testing.T) {
	t.Parallel()
	require.Nil(t, diagramOfUploads([]client.Video{uploadedVideo("2026-11-02", 1), uploadedVideo("2026-11-03", 2)}))
	var videos []client.Video
	for n := range 20 {
		videos = append(videos, uploadedVideo("2026-11-02", int64(100-n)))
	}
	u := diagramOfUploads(videos)
	require.EqualValues(t, 82, *u.P10, "P10 must be 82, because two of the twenty videos have at most 82 views")
	require.EqualValues(t, 99, *u.P90, "P90 must be 99, because two of the twenty videos have at least 99 views")
	equal := diagramOfUploads([]client.Video{uploadedVideo("2026-11-02", 0), uploadedVideo("2026-11-02", 0), uploadedVideo("2026-11-02", 0)})
	require.InDelta(t, dotsHeight/2, equal.Dots[0].Y, 0.01, "if all videos have equally many views, their dots must be at half of the height")
	require.False(t, equal.Dots[0].High, "if the median is 0, no video may be an outlier")
}
