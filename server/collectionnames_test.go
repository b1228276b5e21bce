package server_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

func TestListVideos_ignoresBlanksAroundTheNameOfACollection(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		for n, name := range []string{"Alpha", "Beta"} {
			c.send(http.MethodPost, "/videos", map[string]any{"link": videoURLs(n+1, n+1)[0], "collection_names": []string{name}}).requireStatus(http.StatusOK)
		}
		require.Len(t, c.listVideos("collections="+url.QueryEscape("Beta, Alpha")).Data, 2)
		c.send(http.MethodPost, "/collections", map[string]any{"name": " Alpha"}).requireStatus(http.StatusCreated)
		require.Len(t, c.listVideos("collections="+url.QueryEscape("Beta, Alpha")).Data, 1, "a collection with exactly this name wins")
	})
}

func TestBulkTrackVideos_takes100Collections(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	ids := make([]uuid.UUID, 100)
	for i := range ids {
		ids[i] = decode[client.Collection](c.send(http.MethodPost, "/collections", map[string]any{"name": "C"}).requireStatus(http.StatusCreated)).ID
	}
	c.send(http.MethodPost, "/videos/bulk", map[string]any{"links": videoURLs(1, 1), "label_ids": ids}).requireStatus(http.StatusOK)
	c.send(http.MethodPost, "/videos/bulk", map[string]any{"links": videoURLs(1, 1), "label_ids": append(slices.Clone(ids), uuid.New())}).requireStatus(http.StatusBadRequest)
}
