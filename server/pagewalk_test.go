package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// TestListVideos_returnsEachUnchangedVideoOnceDespiteWrites uses these numbers of videos.
const (
	neverStoppedVideos = 10_000 // number of videos that stay tracked during the whole test
	stoppableVideos    = 400    // number of videos that the test can stop while it reads the list
	videosPerAccount   = 100    // number of videos of each account
	walkPageSize       = 1000   // number of videos on each page of the list
)

// newCallerWithManyVideos creates an organisation with 10,400 tracked videos. The test can stop the
// tracking of the videos in stoppable. The other videos stay tracked.
func newCallerWithManyVideos(t *testing.T, a *app) (c *caller, neverStopped, stoppable []uuid.UUID) {
	t.Helper()
	c = a.newCaller(t, store.TierPremium)
	now := a.Clock.Now()
	batch := backfill.SeedBatch{Source: "test"}
	for n := range neverStoppedVideos + stoppableVideos {
		if n%videosPerAccount == 0 {
			name := fmt.Sprintf("user%d", n)
			batch.Accounts = append(batch.Accounts, backfill.SeedAccount{Account: store.Account{ID: store.NewID(), Platform: link.TikTok, Username: name, HandleCurrent: true,
				Link: link.AccountURL(link.TikTok, name), CreatedAt: store.InstantOf(now)}})
		}
		account := &batch.Accounts[len(batch.Accounts)-1]
		v := backfill.SeedVideo{Video: store.Video{ID: store.NewID(), Platform: link.TikTok, ExternalID: fmt.Sprint(7300000000000000000 + n), Link: videoURL(n), Username: account.Username,
			CreatedAt: store.InstantOf(now.Add(-time.Duration(1+n%300) * time.Minute)), Direct: true},
			// The last fetch was more than four hours ago, so that the server accepts a refresh of the video.
			Points: []backfill.Point{{At: store.InstantOf(now.Add(-time.Duration(5*3600+n%700) * time.Second)), Counts: store.Counts{Views: new(int64(n % 900)), Likes: new(int64(n % 50))}}}}
		if n%7 > 0 {
			v.UploadedAt = new(store.DateOf(now.AddDate(0, 0, -n%90)))
		}
		account.Videos = append(account.Videos, v)
		if n < neverStoppedVideos {
			neverStopped = append(neverStopped, v.ID)
		} else {
			stoppable = append(stoppable, v.ID)
		}
	}
	require.NoError(t, backfill.Seed(t.Context(), a.Org(c.org.ID), batch))
	return c, neverStopped, stoppable
}

// readAllPages reads all pages of GET /videos and returns how often it got each video. If byPage is
// true, it requests the pages by number, otherwise by cursor. Between two pages, it calls writeBetween.
func (c *caller) readAllPages(ctx context.Context, query string, byPage bool, writeBetween func()) (map[uuid.UUID]int, error) {
	timesReturned := map[uuid.UUID]int{}
	next := ""
	for page := 1; ; page++ {
		at := next
		if byPage {
			at = fmt.Sprintf("&page=%d", page)
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.app.http.URL+fmt.Sprintf("/videos?limit=%d&%s%s", walkPageSize, query, at), http.NoBody)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+c.token)
		resp, err := inProcess{c.app.server.Handler()}.RoundTrip(r) // the response is not checked against the contract, because the check is slow
		if err != nil {
			return nil, err
		}
		var got struct {
			Data []struct {
				AdID uuid.UUID `json:"ad_id"`
			} `json:"data"`
			Pagination struct {
				NextCursor *string `json:"next_cursor"`
			} `json:"pagination"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("reading GET /videos?%s failed on page %d with status %d and error %w", query, page, resp.StatusCode, err)
		}
		for _, v := range got.Data {
			timesReturned[v.AdID]++
		}
		if got.Pagination.NextCursor == nil {
			return timesReturned, nil
		}
		next = "&cursor=" + *got.Pagination.NextCursor
		writeBetween()
	}
}

// listWriter changes the videos of an organisation while other goroutines read lists of these
// videos. The method makeChanges makes the changes.
type listWriter struct {
	c                       *caller
	neverStopped, stoppable []uuid.UUID
	steps                   chan int
	errs                    chan error
	done                    sync.WaitGroup
}

// makeChanges sends three write requests and stores new views for each number from w.steps. It
// returns when w.steps is closed or a change fails.
func (w *listWriter) makeChanges() {
	for n := range w.steps {
		// Track a video, stop the tracking of another video, and request a refresh of a third video.
		for _, r := range []struct {
			method, target string
			body           any
			status         int
		}{
			{http.MethodPost, "/videos", map[string]any{"link": videoURL(50_000 + n)}, http.StatusOK},
			{http.MethodDelete, "/videos/" + w.stoppable[n%len(w.stoppable)].String(), nil, http.StatusOK},
			{http.MethodPost, "/refresh/videos", map[string]any{"link": w.neverStopped[n*31%len(w.neverStopped)].String()}, http.StatusAccepted},
		} {
			got, err := w.c.app.exchange(w.c.t, r.method, r.target, r.body, "Authorization", "Bearer "+w.c.token)
			if err == nil && got.StatusCode != r.status {
				err = fmt.Errorf("the response of %s %s has the unexpected status %d: %s", r.method, r.target, got.StatusCode, got.body)
			}
			if err != nil {
				w.errs <- err
				return
			}
		}
		if err := w.storeNewViews(); err != nil {
			w.errs <- err
			return
		}
	}
}

// storeNewViews stores new views for all due videos, as a collector does. These videos then have a later latest_updated_at and higher
// latest_views than all other videos.
func (w *listWriter) storeNewViews() error {
	a, ctx := w.c.app, w.c.t.Context()
	a.Clock.Advance(time.Millisecond)
	for _, lane := range queue.Lanes {
		claim, err := a.Claim(ctx, storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 100, time.Minute, lane))
		if err != nil {
			return err
		}
		outcomes := make([]ingest.Outcome, len(claim.Targets))
		for i, target := range claim.Targets {
			outcomes[i] = ingest.Outcome{Target: target, Facts: &ingest.VideoFacts{Views: new(claim.At.Time().UnixMilli())}, Source: "test", State: "active",
				NextAt: store.InstantOf(a.Clock.Now().Add(24 * time.Hour))}
		}
		if err := a.Acknowledge(ctx, claim, claim.At, outcomes); err != nil {
			return err
		}
	}
	return nil
}

// walkCases contains queries of GET /videos. The test reads all pages of each query while a
// listWriter changes videos.
var walkCases = []struct {
	query                    string
	byPage                   bool
	minReturned, maxReturned int // how often each video that stays tracked must be returned
}{
	{"order_by=created_at", false, 1, 1},
	{"order_by=created_at&order_direction=asc", false, 1, 1},
	{"order_by=uploaded_at", false, 1, 1},
	{"order_by=uploaded_at&order_direction=asc", false, 1, 1},
	{"order_by=latest_likes", false, 1, 1},
	// The next two lists can return a video twice, because a fetch can move the video to a page that was not
	// read yet.
	{"order_by=latest_updated_at&order_direction=asc", false, 1, 2},
	{"order_by=latest_views&order_direction=asc", false, 1, 2},
	// The next list can omit a video, because a fetch can move the video to a page that was already read.
	{"", false, 0, 1}, // without order_by, the order is latest_updated_at, descending
	// The pages of this query do not shift: new videos are added at the end of the list, and stopped videos keep their position.
	{"order_by=created_at&order_direction=asc&include_removed=true", true, 1, 1},
}

func TestListVideos_returnsEachUnchangedVideoOnceDespiteWrites(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	eachDatabase(t, func(t *testing.T, a *app) {
		c, neverStopped, stoppable := newCallerWithManyVideos(t, a)
		w := &listWriter{c: c, neverStopped: neverStopped, stoppable: stoppable, steps: make(chan int), errs: make(chan error, 1)}
		w.done.Go(w.makeChanges)
		steps := make(chan struct{}, len(walkCases)*(neverStoppedVideos/walkPageSize+2))
		var walkers, dispatch sync.WaitGroup
		dispatch.Go(func() {
			defer close(w.steps)
			n := 0
			for range steps {
				select {
				case w.steps <- n:
					n++
				case err := <-w.errs:
					w.errs <- err
					return
				}
			}
		})
		timesReturned, errs := make([]map[uuid.UUID]int, len(walkCases)), make([]error, len(walkCases))
		for i, walk := range walkCases {
			walkers.Go(func() {
				timesReturned[i], errs[i] = c.readAllPages(t.Context(), walk.query, walk.byPage, func() { steps <- struct{}{} })
			})
		}
		walkers.Wait()
		close(steps)
		dispatch.Wait()
		w.done.Wait()
		select {
		case err := <-w.errs:
			require.NoError(t, err)
		default:
		}
		for i, walk := range walkCases {
			require.NoError(t, errs[i])
			for _, id := range neverStopped {
				require.GreaterOrEqual(t, timesReturned[i][id], walk.minReturned, "%s: %s", walk.query, id)
				require.LessOrEqual(t, timesReturned[i][id], walk.maxReturned, "%s: %s", walk.query, id)
			}
		}
	})
}
