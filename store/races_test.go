package store_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// In most tests of this file, a second transaction begins between two statements of a first
// transaction. The result must be correct, whichever transaction ends first.

func TestTrack_keepsDataConsistentIfTheVideoIsConcurrentlyTrackedAndStopped(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL)
		// The concurrent transaction begins after Track has looked up the video and not found it.
		finish := storetest.RunBeforeStatement(t, db, "title_folded", func(s *store.Store) {
			storetest.Track(t, s.Org(o.ID()), l)
			storetest.StopVideos(t, s.Org(o.ID()), l)
		})
		storetest.Track(t, o, l)
		finish()
		storetest.RequireConsistent(t, db, o)
	})
}

func TestTrack_keepsDataConsistentIfAPendingVideoIsConcurrentlyTracked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewFreeOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL)
		finish := storetest.RunBeforeStatement(t, db, "title_folded", func(s *store.Store) { storetest.Track(t, s.Org(o.ID()), l) })
		_, err := o.Track(t.Context(), store.TrackRequest{Links: []link.Link{l}}) // Allowance is 0, so the video is saved as pending
		require.NoError(t, err)
		finish()
		storetest.RequireConsistent(t, db, o)
	})
}

func TestSetSubscription_keepsDataConsistentIfAPendingVideoIsConcurrentlySaved(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewFreeOrg(t, db)
		_, err := o.Track(t.Context(), store.TrackRequest{Links: []link.Link{storetest.VideoLink(t, 1)}})
		require.NoError(t, err)
		finish := storetest.RunBeforeStatement(t, db, "SELECT subject_id FROM fetch_subscriptions", func(s *store.Store) {
			_, err := s.Org(o.ID()).Track(t.Context(), store.TrackRequest{Links: []link.Link{storetest.ParseLink(t, storetest.YouTubeURL)}})
			require.NoError(t, err)
		})
		require.NoError(t, db.SetSubscription(t.Context(), o.ID(), store.SubscriptionActive))
		finish()
		require.False(t, storetest.VideoOf(t, o, storetest.VideoLink(t, 1)).Pending)
		storetest.RequireConsistent(t, db, o)
	})
}

func TestSetSubscription_keepsItemsPendingIfTheSubscriptionEndsMeanwhile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewFreeOrg(t, db)
		_, err := o.Track(t.Context(), store.TrackRequest{Links: []link.Link{storetest.VideoLink(t, 1)}})
		require.NoError(t, err)
		// SetSubscription calls the function when the subscription has begun, but the pending videos are not in the queue yet.
		require.NoError(t, db.SetSubscription(t.Context(), o.ID(), store.SubscriptionActive, func(_, _ int64) {
			require.NoError(t, db.SetSubscription(t.Context(), o.ID(), store.SubscriptionNone))
		}))
		require.True(t, storetest.VideoOf(t, o, storetest.VideoLink(t, 1)).Pending)
		require.Empty(t, storetest.Claim(t, db, link.TikTok, "video"))
	})
}

func TestTrack_reportsNothingPendingIfTheSubscriptionHasJustBegun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewFreeOrg(t, db)
		video := store.TrackRequest{Links: []link.Link{storetest.VideoLink(t, 1)}}
		account := store.TrackRequest{Links: []link.Link{storetest.ParseLink(t, storetest.AccountURL)}}
		requirePending := func(want bool) {
			tracked, err := o.Track(t.Context(), video)
			require.NoError(t, err)
			require.Equal(t, want, tracked[0].Pending)
			tracked, err = o.TrackAccounts(t.Context(), account)
			require.NoError(t, err)
			require.Equal(t, want, tracked[0].Pending)
		}
		requirePending(true)
		requirePending(true) // the items are already tracked
		// SetSubscription calls the function when the subscription has begun, but the pending items are not in the queue yet.
		require.NoError(t, db.SetSubscription(t.Context(), o.ID(), store.SubscriptionActive, func(_, _ int64) { requirePending(false) }))
	})
}

// A subscription begins while a request tracks a video or an account. No item may stay pending.
func TestTrack_fetchesItemsIfASubscriptionBeginsMeanwhile(t *testing.T) {
	t.Parallel()
	for name, track := range map[string]func(*store.Org) error{
		"video": func(o *store.Org) error {
			_, err := o.Track(t.Context(), store.TrackRequest{Links: []link.Link{storetest.VideoLink(t, 1)}})
			return err
		},
		"account": func(o *store.Org) error {
			_, err := o.TrackAccounts(t.Context(), store.TrackRequest{Links: []link.Link{storetest.ParseLink(t, storetest.AccountURL)}, Type: store.TrackAll})
			return err
		},
	} {
		// The subscription begins before the first transaction locks the organisation, or after it has read the subscription.
		for _, moment := range []string{"UPDATE organisation_totals SET version", "INSERT INTO"} {
			t.Run(name+" "+moment, func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, db *storetest.DB) {
					o := storetest.NewFreeOrg(t, db)
					finish := storetest.RunBeforeStatement(t, db, moment, func(s *store.Store) {
						require.NoError(t, s.SetSubscription(t.Context(), o.ID(), store.SubscriptionActive))
					})
					require.NoError(t, track(o))
					finish()
					require.Equal(t, []queue.Lane{queue.LaneBasic}, storetest.Column[queue.Lane](t, db, "SELECT base_lane FROM fetch_targets"))
					require.Zero(t, storetest.Column[int64](t, db, "SELECT COUNT(*) FROM videos WHERE pending")[0])
				})
			})
		}
	}
}

func TestTrack_schedulesAnotherFetchIfAFetchOfTheVideoIsRunning(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, late, l := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL)
		storetest.Track(t, o, l)
		c := storetest.ClaimOne(t, db, link.YouTube, "video")
		storetest.Track(t, late, l) // the clock shows the same time as at the claim
		require.Empty(t, storetest.Claim(t, db, link.YouTube, "video"), "the target must not be due while it is claimed")
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.Outcome(db, c.Targets[0], storetest.Views(1))}))
		require.EqualValues(t, 1, *storetest.VideoOf(t, late, l).Latest.Views, "the result of the first fetch must also be stored for the second organisation")

		again := storetest.ClaimOne(t, db, link.YouTube, "video")
		require.Equal(t, queue.LaneInteractive, again.Targets[0].Lane)
		require.NoError(t, db.Acknowledge(t.Context(), again, again.At, []ingest.Outcome{storetest.Outcome(db, again.Targets[0], storetest.Views(2))}))
		require.Empty(t, storetest.Claim(t, db, link.YouTube, "video"), "a third fetch must not be due yet")
	})
}

// TestTrack_schedulesAFetchIfACollectorClaimsTheVideoMeanwhile checks that a target is fetched again if a collector claims it while Track runs. Track
// read the clock before the claim, but adds the subscription after it.
func TestTrack_schedulesAFetchIfACollectorClaimsTheVideoMeanwhile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, late, l := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL)
		storetest.Track(t, o, l)
		finish := func() {}
		db.Guard.BeforeStatement("fetch_targets", func() { // this function runs after the second call of Track has read the clock
			if !db.SharedByProcesses() {
				return
			}
			db.Clock.Advance(time.Second)
			c := storetest.ClaimOne(t, db, link.YouTube, "video")
			finish = storetest.RunBeforeStatement(t, db, "fetch_subscriptions", func(s *store.Store) { // this function runs after the second call of Track has saved its target
				require.NoError(t, ingest.New(s).Acknowledge(context.WithoutCancel(t.Context()), c, c.At, []ingest.Outcome{storetest.Outcome(db, c.Targets[0], storetest.Views(1))}))
			})
		})
		storetest.Track(t, late, l)
		finish()
		storetest.Deliver(t, db, link.YouTube, storetest.Views(2))
		require.NotNil(t, storetest.VideoOf(t, late, l).Latest.Views, "the second organisation must not wait for the next day")
	})
}

func TestClaim_keepsATargetThatConcurrentlyGetsASubscription(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other, l := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL)
		storetest.Track(t, o, l)
		storetest.StopVideos(t, o, l)
		finish := storetest.RunBeforeStatement(t, db, "DELETE FROM fetch_targets", func(s *store.Store) { storetest.Track(t, s.Org(other.ID()), l) })
		require.Empty(t, storetest.Claim(t, db, link.YouTube, "video"))
		finish()
		require.Equal(t, 1, storetest.Deliver(t, db, link.YouTube, storetest.Views(1)))
		require.NotNil(t, storetest.VideoOf(t, other, l).Latest.Views)
	})
}

func TestRefresh_addsNoSubscriptionIfTheRecordIsConcurrentlyStopped(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		if !db.SharedByProcesses() {
			return // on SQLite, the transaction holds the write lock before its first statement, so the test cannot stop the tracking at this point
		}
		o, l, someone := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.YouTubeURL), storetest.ParseLink(t, "https://www.tiktok.com/@someone")
		storetest.Track(t, o, l)
		storetest.Deliver(t, db, link.YouTube, storetest.Views(1))
		storetest.Follow(t, o, store.TrackNewOnly, someone)
		db.Clock.Advance(queue.RefreshPause)

		// The refresh first reads the tracked video and later locks a row. The tracking is stopped between these two steps.
		db.Guard.BeforeStatement("UPDATE organisation_totals SET version", func() { storetest.StopVideos(t, o, l) })
		_, err := o.RefreshVideo(t.Context(), store.Ref{Link: l}, nil)
		require.ErrorIs(t, err, store.ErrNotFound)
		db.Guard.BeforeStatement("UPDATE organisation_totals SET version", func() {
			storetest.StopAccounts(t, o, someone)
		})
		_, err = o.RefreshAccount(t.Context(), store.Ref{Link: someone}, nil)
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Empty(t, storetest.Column[string](t, db, "SELECT external_id FROM fetch_subscriptions"))
	})
}

func TestReserveKey_returnsNoErrorIfTheKeyIsConcurrentlyReleased(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		_, err := o.ReserveKey(t.Context(), "TrackVideo", "k", []byte("f"))
		require.NoError(t, err)
		finish := storetest.RunBeforeStatement(t, db, "operation = ", func(s *store.Store) {
			require.NoError(t, s.Org(o.ID()).ReleaseKey(context.WithoutCancel(t.Context()), "TrackVideo", "k"))
		})
		k, err := o.ReserveKey(t.Context(), "TrackVideo", "k", []byte("f"))
		finish()
		require.NoError(t, err)
		if db.SharedByProcesses() {
			require.Equal(t, store.KeyFresh, k.State)
		} else {
			require.Equal(t, store.KeyRunning, k.State)
		}
	})
}

func TestSetUp_createsOneOrganisationIfTwoLinksAreUsedConcurrently(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first, err := db.CreateSetupLink(t.Context())
		require.NoError(t, err)
		second := sha256.Sum256([]byte("second"))
		db.Exec(t, "INSERT INTO login_links (hash, token_id, created_at, expires_at) SELECT ?, token_id, created_at, expires_at FROM login_links", second[:])
		finish := storetest.RunBeforeStatement(t, db, "DELETE FROM login_links", func(s *store.Store) {
			_, err := s.SetUp(t.Context(), "second", "Second")
			require.ErrorIs(t, err, store.ErrSetUp)
		})
		_, err = db.SetUp(t.Context(), first, "First")
		finish()
		require.NoError(t, err)
		require.Equal(t, []string{"First"}, storetest.Column[string](t, db, "SELECT name FROM organisations"))
	})
}

func TestCreateSetupLink_leavesOneLinkIfTwoAreCreatedConcurrently(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		finish := storetest.RunBeforeStatement(t, db, "expires_at", func(s *store.Store) { // the first transaction has deleted the earlier links
			_, err := s.CreateSetupLink(t.Context())
			require.NoError(t, err)
		})
		_, err := db.CreateSetupLink(t.Context())
		require.NoError(t, err)
		finish()
		require.Equal(t, []int64{1}, storetest.Column[int64](t, db, "SELECT COUNT(*) FROM login_links"))
	})
}

func TestCreateReport_makesTheReportIfOtherReportsAlwaysTakeItsNumber(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		empty := func(io.Writer, store.Report, store.CollectionTotals) error { return nil }
		report := store.NewReport{CollectionID: storetest.Collection(t, o, "Dogs", nil).ID, From: storetest.Today(db) - 1, To: storetest.Today(db), CreatedBy: store.NewID(), Document: empty}
		calls, slow := 0, report
		var other chan error // gets the result of the latest other report
		slow.Document = func(w io.Writer, r store.Report, _ store.CollectionTotals) error {
			calls++
			result := make(chan error, 1)
			other = result
			go func() {
				_, err := o.CreateReport(context.WithoutCancel(t.Context()), report)
				result <- err
			}()
			// Only the third call is inside the transaction, so the other report then waits for the lock of the organisation.
			for len(result) == 0 && (calls < 3 || !storetest.IsWaitingForLock(t, db)) {
				<-time.After(time.Millisecond)
			}
			_, err := fmt.Fprint(w, r.Number)
			return err
		}
		made, err := o.CreateReport(t.Context(), slow)
		require.NoError(t, err)
		require.NoError(t, <-other)
		require.EqualValues(t, 3, made.Number)
		document, err := o.ReportDocument(t.Context(), made.ID)
		require.NoError(t, err)
		require.Equal(t, "3", string(document))
		require.Equal(t, []int64{1, 2, 3, 4}, storetest.Column[int64](t, db, "SELECT number FROM reports ORDER BY number"))
	})
}
