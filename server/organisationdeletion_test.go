package server_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

func TestDeletedOrganisation_isRefusedWithinASecond(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		other := a.newCaller(t, store.TierPremium)
		v := c.newSignedInVisitor(t)
		c.track(videoURL(1))
		shared, err := a.Org(c.org.ID).CreateCollection(t.Context(), store.NewCollection{Name: "Spring", Access: store.AccessPublic})
		require.NoError(t, err)
		outside := &visitor{app: a, t: t}
		v.visit("/video").requireStatus(http.StatusOK)
		outside.visit("/c/" + *shared.Hash).requireStatus(http.StatusOK)

		// The deletion is interrupted after its first transactions.
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		require.ErrorIs(t, a.DeleteOrganisation(ctx, c.org.ID, func(int64) { cancel() }), context.Canceled)

		c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(2)}).requireProblem(http.StatusUnauthorized, server.CodeTokenRevoked)
		outside.visit("/c/" + *shared.Hash).requireStatus(http.StatusNotFound)
		a.Clock.Advance(time.Second)
		c.send(http.MethodGet, "/videos", nil).requireProblem(http.StatusUnauthorized, server.CodeTokenRevoked)
		v.visit("/video").requireStatus(http.StatusSeeOther)

		require.NoError(t, a.DeleteOrganisation(t.Context(), c.org.ID, func(int64) {}))
		a.Clock.Advance(time.Minute)
		c.send(http.MethodGet, "/videos", nil).requireProblem(http.StatusUnauthorized, server.CodeTokenUnknown)
		other.track(videoURL(2))

		// A server still knows a token for up to a second after the deletion has ended.
		c = a.newCaller(t, store.TierPremium)
		c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
		require.NoError(t, a.DeleteOrganisation(t.Context(), c.org.ID, func(int64) {}))
		c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(3)}).requireProblem(http.StatusUnauthorized, server.CodeTokenRevoked)
		c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(3)}, "Idempotency-Key", "key-of-a-late-request").requireProblem(http.StatusUnauthorized, server.CodeTokenRevoked)
	})
}

func TestRenamedOrganisation_isShownWithItsNewNameWithinASecond(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		before := c.send(http.MethodGet, "/authenticate", nil).requireStatus(http.StatusOK)
		require.NoError(t, a.RenameOrganisation(t.Context(), c.org.ID, "Müller und Söhne"))
		a.Clock.Advance(time.Second)
		after := c.send(http.MethodGet, "/authenticate", nil, "If-None-Match", before.Header.Get("ETag")).requireStatus(http.StatusOK)
		require.Contains(t, string(after.body), `"Müller und Söhne"`)
	})
}
