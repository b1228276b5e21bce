package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestHeartbeat_freesNothingIfTheClocksOfTwoCollectorsDiffer(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": time.Minute, "behind": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				const deadAfter = 10 * time.Second
				other, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: func() time.Time { return db.Clock.Now().Add(ahead) }})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, other.Close()) })
				storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLink(t, 1))
				a, b := store.NewID(), store.NewID()
				heartbeat := func(s *store.Store, id [16]byte) int64 {
					t.Helper()
					freed, err := s.Queue.Heartbeat(t.Context(), id, deadAfter, nil)
					require.NoError(t, err)
					return freed
				}
				require.Zero(t, heartbeat(db.Store, a))
				_, err = db.Claim(t.Context(), storetest.NewClaimRequest(a, link.TikTok, "video", 1, time.Hour, queue.LaneInteractive))
				require.NoError(t, err)
				for range 10 {
					require.Zero(t, heartbeat(other, b))
					db.Clock.Advance(2 * time.Second)
					require.Zero(t, heartbeat(db.Store, a))
				}
				require.Zero(t, heartbeat(other, b))
				db.Clock.Advance(deadAfter)
				require.Zero(t, heartbeat(other, b))
				db.Clock.Advance(time.Microsecond)
				require.EqualValues(t, 1, heartbeat(other, b), "the collector has really stopped")
			})
		})
	}
}

func TestHeartbeat_freesTargetsOfADeadCollectorAfterTheClockWentBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const deadAfter = 10 * time.Second
		storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLink(t, 1))
		dead, alive := store.NewID(), store.NewID()
		_, err := db.Heartbeat(t.Context(), dead, deadAfter, nil)
		require.NoError(t, err)
		_, err = db.Claim(t.Context(), storetest.NewClaimRequest(dead, link.TikTok, "video", 1, time.Hour, queue.LaneInteractive))
		require.NoError(t, err)
		other, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, other.Close()) })
		observe := func() int64 {
			t.Helper()
			freed, err := other.Queue.Heartbeat(t.Context(), alive, deadAfter, nil)
			require.NoError(t, err)
			return freed
		}
		db.Clock.Advance(time.Hour)
		require.Zero(t, observe(), "the process sees this heartbeat for the first time, and its clock is an hour ahead")
		db.Clock.Advance(-time.Hour)
		require.Zero(t, observe())
		db.Clock.Advance(deadAfter + time.Microsecond)
		require.EqualValues(t, 1, observe())
	})
}

func TestHeartbeat_keepsTheRowOfADeadCollectorWhileItCanStoreAnswers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const deadAfter = 10 * time.Second
		storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLinks(t, 2)...)
		dead, alive := store.NewID(), store.NewID()
		heartbeat := func(id [16]byte, seconds int64) int64 {
			t.Helper()
			freed, err := db.Heartbeat(t.Context(), id, deadAfter, []queue.Source{{Name: "vendor", FetchSeconds: seconds}})
			require.NoError(t, err)
			return freed
		}
		claim := func() {
			t.Helper()
			_, err := db.Claim(t.Context(), storetest.NewClaimRequest(dead, link.TikTok, "video", 1, time.Hour, queue.LaneInteractive))
			require.NoError(t, err)
		}
		heartbeat(dead, 600)
		heartbeat(alive, 60)
		claim()
		db.Clock.Advance(deadAfter + time.Microsecond)
		require.EqualValues(t, 1, heartbeat(alive, 60))
		claim()
		for range 2 {
			require.Zero(t, heartbeat(alive, 60), "the targets of a collector are freed once after each heartbeat")
		}
		rows := func() int { return storetest.Column[int](t, db, "SELECT COUNT(*) FROM collectors")[0] }
		db.Clock.Advance(20*time.Minute - deadAfter - time.Microsecond)
		heartbeat(alive, 60)
		require.Equal(t, 2, rows())
		db.Clock.Advance(time.Microsecond)
		heartbeat(alive, 60)
		require.Equal(t, 1, rows())
	})
}
