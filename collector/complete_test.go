package collector_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// trackReelWithoutLength tracks an Instagram reel and returns its true values in the sandbox. The Graph API does not return the length of
// a reel, but a vendor does.
func (w *testSystem) trackReelWithoutLength() (tracked []store.Tracked, correct sandbox.VideoTruth) {
	w.t.Helper()
	platforms := w.sandbox.World()
	reel, ok := platforms.Video(link.Instagram, platforms.Find(link.Instagram, sandbox.Normal), w.db.Clock.Now())
	require.True(w.t, ok)
	return w.trackVideos("https://www.instagram.com/" + reel.Account.Handle + "/reel/" + reel.ID + "/"), reel
}

func TestMissingDetails_areTakenFromTheNextSource(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		tracked, correct := w.trackReelWithoutLength()
		w.startCollectorWith(append(w.metaSources(), w.newSources("ensembledata")...)...)
		w.waitForCounts(tracked)
		v := w.video(tracked[0])
		require.Equal(t, strconv.FormatFloat(correct.LengthSeconds, 'f', -1, 64), *v.VideoLength, "the length must come from the vendor")
		require.Equal(t, correct.Views, *v.Latest.Views)
		require.Nil(t, v.Latest.Shares, "the counts must come from a single source")
		require.Equal(t, 1, w.callCount("vendor"))

		// The vendor was needed only for the length of the video. The fetch on the next day requests no
		// details, so the vendor is not asked again.
		db.Clock.Advance(24 * time.Hour)
		db.Exec(t, "UPDATE fetch_targets SET next_at = ?", store.InstantOf(db.Clock.Now()))
		w.waitUntil("the video must be fetched again", func() bool { return *w.video(tracked[0]).LatestUpdatedAt > *v.LatestUpdatedAt })
		require.Equal(t, 1, w.callCount("vendor"))
	})
}

// A live broadcast has no length. Another source does not know the length either, so the other source must not be asked.
func TestMissingDetails_doNotIncludeTheLengthOfALiveBroadcast(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		tracked := w.trackVideos("https://youtu.be/" + w.sandbox.World().Find(link.YouTube, sandbox.Live))
		w.startCollector("scrapecreators")
		w.waitForCounts(tracked)
		require.Nil(t, w.video(tracked[0]).VideoLength)
		require.Zero(t, w.callCount("vendor"))
	})
}

func TestMissingDetails_doNotPreventStoringTheCounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		w.callControlInterface(http.MethodPut, "/_control/faults", map[string]any{"source": "vendor", "fault": "server_error", "count": 1000})
		tracked, correct := w.trackReelWithoutLength()
		w.startCollectorWith(append(w.metaSources(), w.newSources("ensembledata")...)...)
		w.waitForCounts(tracked)
		v := w.video(tracked[0])
		require.Nil(t, v.VideoLength)
		require.Equal(t, correct.Title, v.Title)
		require.Equal(t, correct.Views, *v.Latest.Views)
		w.waitForLog("call failed, source not paused", "vendor:ensembledata")
	})
}
