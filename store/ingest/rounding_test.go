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
			roundedFrom            int64 // the smallest number that the source rounds; 0 if the reported count is exact
		}{
			{573_942, 573_900, 573_942, 10_000},                   // rounded down
			{573_960, 574_000, 573_960, 10_000},                   // rounded to the nearest number
			{573_942, 574_000, 574_000, 10_000},                   // 573,942 is never rounded to 574,000
			{573_942, 573_800, 573_800, 10_000},                   // 573,942 is never rounded to 573,800
			{573_942, 573_900, 573_900, 0},                        // an exact answer
			{1_234_567, 1_200_000, 1_234_567, 10_000},             // one decimal place of millions
			{1_234_567, 1_234_500, 1_234_500, 10_000},             // not a rounded number of millions
			{999_960, 1_000_000, 999_960, 10_000},                 // rounded up to the next unit
			{950_000, 1_000_000, 1_000_000, 10_000},               // 950K is not shown as 1M
			{2_123_000_000, 2_100_000_000, 2_123_000_000, 10_000}, // one decimal place of billions
			{9_960, 10_000, 10_000, 10_000},                       // a source that rounds from 10,000 on does not round 9,960
			{9_942, 9_900, 9_942, 1_000},                          // rounded down
			{9_960, 10_000, 9_960, 1_000},                         // rounded up to the next unit
			{9_942, 9_800, 9_800, 1_000},                          // 9,942 is never rounded to 9,800
			{9_942, 9_000, 9_000, 1_000},                          // 9,942 is shown as 9.9K
			{9_942, 9_900, 9_900, 0},                              // an exact answer
			{940, 1_000, 1_000, 1_000},                            // a source that rounds from 1,000 on does not round 940
			{12_345, 12_000, 12_345, 10_000},                      // whole thousands from ten thousand on
			{2_412_345, 2_400_000, 2_412_345, 10_000},             // one decimal place of millions
			{24_912_345, 24_000_000, 24_912_345, 10_000},          // whole millions from ten millions on
			{24_912_345, 25_000_000, 25_000_000, 10_000},          // whole units are rounded down
			{2_412_345, 2_000_000, 2_000_000, 10_000},             // 2,412,345 is shown as 2.4M
		} {
			// The likes of the answer are exact, although they could be the stored likes after rounding.
			require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, ingest.VideoFacts{Views: &c.stored, Likes: new(int64(12_345))}))
			db.Clock.Advance(24 * time.Hour)
			reported := ingest.VideoFacts{Views: &c.reported, Likes: new(int64(12_300))}
			if c.roundedFrom > 0 {
				reported.RoundedFrom.Views = &c.roundedFrom
			}
			require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, reported))
			v, err := o.Video(t.Context(), store.Ref{Link: l})
			require.NoError(t, err)
			require.Equal(t, []int64{c.want, 12_300}, []int64{*v.Latest.Views, *v.Latest.Likes}, "%v", c)
			today := storetest.Today(db)
			points, err := o.History(t.Context(), store.Ref{Link: l}, today, today)
			require.NoError(t, err)
			require.Len(t, points, 1)
			require.Equal(t, []int64{c.want, 12_300}, []int64{*points[0].Views, *points[0].Likes}, "the point of the day must have the same counts: %v", c)
			require.Equal(t, c.roundedFrom > 0, points[0].Quality == store.QualityRounded)
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
		for _, stored := range []string{"NULL", "'0'"} { // earlier releases stored '0' for a length of zero
			db.Exec(t, "UPDATE videos SET video_length = "+stored)
			require.Equal(t, 1, storetest.Deliver(t, db, link.YouTube, facts))
			v, err := o.Video(t.Context(), store.Ref{Link: l})
			require.NoError(t, err)
			require.Nil(t, v.VideoLength)
			db.Clock.Advance(24 * time.Hour)
		}
	})
}
