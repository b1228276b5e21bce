package ingest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestAcknowledge_keepsAMoreExactCount(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.CreatePartitions(t, db, 60)
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, "https://www.tiktok.com/@someone/video/7301234567890123456")
		storetest.Track(t, o, l)
		for _, c := range []struct {
			stored, reported, want int64
			rounded                bool
		}{
			{573_942, 573_900, 573_942, true},                   // rounded down
			{573_960, 574_000, 573_960, true},                   // rounded to the nearest number
			{573_942, 574_000, 574_000, true},                   // 573,942 is never rounded to 574,000
			{573_942, 573_800, 573_800, true},                   // 573,942 is never rounded to 573,800
			{573_942, 573_900, 573_900, false},                  // an exact answer
			{1_234_567, 1_200_000, 1_234_567, true},             // one decimal place of millions
			{1_234_567, 1_234_500, 1_234_500, true},             // not a rounded number of millions
			{999_960, 1_000_000, 999_960, true},                 // rounded up to the next unit
			{950_000, 1_000_000, 1_000_000, true},               // 950K is not shown as 1M
			{2_123_000_000, 2_100_000_000, 2_123_000_000, true}, // one decimal place of billions
			{9_942, 9_900, 9_900, true},                         // a rounded number below 10,000 replaces the count, because most sources do not round it
			{12_345, 12_000, 12_345, true},                      // whole thousands from ten thousand on
			{2_412_345, 2_400_000, 2_412_345, true},             // one decimal place of millions
			{24_912_345, 24_000_000, 24_912_345, true},          // whole millions from ten millions on
			{24_912_345, 25_000_000, 25_000_000, true},          // whole units are rounded down
			{2_412_345, 2_000_000, 2_000_000, true},             // 2,412,345 is shown as 2.4M
		} {
			require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, ingest.VideoFacts{Views: &c.stored, Likes: new(int64(5))}))
			db.Clock.Advance(24 * time.Hour)
			require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, ingest.VideoFacts{Views: &c.reported, Likes: new(int64(6)), Rounded: c.rounded}))
			v, err := o.Video(t.Context(), store.Ref{Link: l})
			require.NoError(t, err)
			require.Equal(t, []int64{c.want, 6}, []int64{*v.LatestViews, *v.LatestLikes}, "%v", c)
			today := storetest.Today(db)
			points, err := o.History(t.Context(), store.Ref{Link: l}, today, today)
			require.NoError(t, err)
			require.Len(t, points, 1)
			require.Equal(t, []int64{c.want, 6}, []int64{*points[0].Views, *points[0].Likes}, "the point of the day must have the same counts: %v", c)
			require.Equal(t, c.rounded, points[0].Quality == store.QualityRounded)
			db.Clock.Advance(24 * time.Hour)
		}
	})
}

func TestAcknowledge_storesNoLengthOfZero(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL)
		storetest.Track(t, o, l)
		facts := storetest.Views(1)
		facts.LengthSeconds = new(0.0)
		for _, stored := range []string{"NULL", "'0'"} { // releases before this rule stored '0'
			db.Exec(t, "UPDATE videos SET video_length = "+stored)
			require.Equal(t, 1, storetest.Deliver(t, db, link.YouTube, facts))
			v, err := o.Video(t.Context(), store.Ref{Link: l})
			require.NoError(t, err)
			require.Nil(t, v.VideoLength)
			db.Clock.Advance(24 * time.Hour)
		}
	})
}
