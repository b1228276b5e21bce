package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
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
