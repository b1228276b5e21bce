package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestEvents_cursorForSomeTypesDoesNotExpireWithEventsOfOtherTypes(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		c.track(tiktokLink)
		const path = "?types=video.views.fell"
		cursor := c.events(path).NextCursor
		a.Clock.Advance(24 * time.Hour)
		a.fetch(factsWithViews(5))
		page := c.events(path + "&cursor=" + cursor)
		require.Empty(t, page.Data, "the fetch must only cause a video.metrics.updated")
		for range 2 {
			a.Clock.Advance(4 * 24 * time.Hour)
			cursor = c.events(path + "&cursor=" + cursor).NextCursor
		}
		deleted, err := a.Writer.DeleteExpired(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		require.EqualValues(t, 1, deleted["events"])
		a.fetch(factsWithViews(4))
		page = c.events(path + "&cursor=" + cursor)
		require.Len(t, page.Data, 1, "no event of the type is missing, so the cursor must still be valid")
		require.Empty(t, c.events(path+"&cursor="+page.NextCursor).Data)
	})
}

func TestEvents_acceptACursorWithTheSameTypesInAnotherOrder(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.track(tiktokLink)
	cursor := c.events("?types=video.views.fell&types=video.removed").NextCursor
	for _, types := range []string{"types=video.removed&types=video.views.fell", "types=video.removed,video.views.fell,video.removed"} {
		c.events("?" + types + "&cursor=" + cursor)
	}
	c.send(http.MethodGet, "/events?types=video.removed&cursor="+cursor, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
}

// Requirements in docs/coverage.md: 14.5-07
func TestEvents_areReadWithACursor(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		c.track(tiktokLink)
		a.fetch(factsWithViews(5))
		first := c.events("")
		require.Empty(t, first.Data, "the first response must be empty, because events are recorded only after the first request for them")
		a.Clock.Advance(24 * time.Hour)
		a.fetch(factsWithViews(4))
		c.track(videoURL(1))
		a.fetch(factsWithViews(20))
		second := c.events("?cursor=" + first.NextCursor)
		types := make([]string, len(second.Data))
		for i, e := range second.Data {
			types[i] = string(e.Type)
		}
		require.Equal(t, []string{"video.metrics.updated", "video.views.fell", "video.metrics.updated"}, types)
		require.False(t, second.HasMore)
		third := c.events("?cursor=" + second.NextCursor)
		require.Empty(t, third.Data)
		require.Equal(t, second.NextCursor, third.NextCursor)
		fell := c.events("?types=video.views.fell")
		require.Len(t, fell.Data, 1)
		c.send(http.MethodGet, "/events?cursor="+fell.NextCursor, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)

		a.Clock.Advance(8 * 24 * time.Hour)
		_, err := a.Writer.DeleteExpired(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		p := c.send(http.MethodGet, "/events?cursor="+first.NextCursor, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Equal(t, "cursor_expired", p.Errors[0].Code)
		require.Empty(t, c.events("").Data)
	})
}

// TestEvents_positionsOrderACopyOfTheVideos sends events to a receiver in another order than that of the feed. The receiver keeps a copy of a video.
// It applies an event to the copy only if the position of the event is higher than that of the last applied event.
func TestEvents_positionsOrderACopyOfTheVideos(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, r := a.newCaller(t, store.TierPremium), newReceiver(t)
		c.createWebhook(r.URL)
		id := c.track(tiktokLink)
		a.fetch(factsWithViews(5))
		stop := func() { c.stopVideos(http.StatusOK, id.String()) }
		requireRightCopy := func(events int) {
			t.Helper()
			r.answerWithStatus(http.StatusServiceUnavailable)
			a.sendDueEvents(t)
			r.answerWithStatus(http.StatusOK)
			first := r.takeRequests()
			a.Clock.Advance(time.Hour)
			a.sendDueEvents(t)
			repeated := r.takeRequests()
			require.Len(t, repeated, events)
			positions := map[string]int64{}
			for _, e := range c.events("").Data {
				positions[e.ID.String()] = e.Position
			}
			var newest client.Event
			for _, request := range slices.Concat(repeated, first) {
				var e client.Event
				require.NoError(t, json.Unmarshal(request.body, &e))
				require.Equal(t, positions[request.header.Get("webhook-id")], e.Position, "webhook and feed must have the same position")
				if e.Position > newest.Position {
					newest = e
				}
			}
			stored, copied := c.video(id.String()), newest.Data.Video
			require.Equal(t, []any{stored.Removed, stored.FetchStatus, stored.LatestViews}, []any{copied.Removed, copied.FetchStatus, copied.LatestViews})
		}
		requireRightCopy(1)
		stop()
		requireRightCopy(1)
		c.track(tiktokLink)
		requireRightCopy(1)
		a.Clock.Advance(24 * time.Hour)
		a.fetch(factsWithViews(5)) // the same counts as before
		requireRightCopy(1)
		stop()
		c.track(tiktokLink)
		a.Clock.Advance(24 * time.Hour)
		a.fetch(factsWithViews(6))
		requireRightCopy(3)
	})
}

func TestEvents_reportVideosThatAreTrackedAgainWithTheirAccount(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{"immediately": time.Second, "at the next fetch": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runWebhookTest(t, func(t *testing.T, a *app) {
				c := a.newCaller(t, store.TierPremium)
				profile := func() {
					a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return fetchedAccount(a, "42", 1, 1, 2) })
				}
				id := c.trackAccount(map[string]any{"link": accountLink}).AccountID.String()
				profile()
				c.events("")
				c.send(http.MethodDelete, "/accounts/"+id, nil).requireStatus(http.StatusOK)
				a.Clock.Advance(pause)
				c.trackAccount(map[string]any{"link": accountLink})
				profile()
				removed := map[string]bool{} // for each video id: the member "removed" of the last event in the feed
				for _, e := range c.events("").Data {
					if v := e.Data.Video; v != nil {
						removed[v.AdID.String()] = v.Removed
						if !v.Removed {
							require.Equal(t, client.FetchStatusPending, v.FetchStatus)
						}
					}
				}
				require.Len(t, removed, 2)
				for video, copied := range removed {
					require.False(t, copied)
					require.False(t, c.video(video).Removed)
				}
			})
		})
	}
}
