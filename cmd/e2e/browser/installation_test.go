package browser

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/monitor"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/server/shortlink"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// installation is a running server whose database has one organisation.
type installation struct {
	url   string // base URL of the server, http://HOST:PORT
	token string // a token with all scopes, of an organisation with the tier "premium"
	db    *storetest.DB
	org   store.Organisation
}

// startInstallation starts a server with a new database. The functions in changeOptions can modify the server's options. The server stops
// when the test ends.
func startInstallation(t *testing.T, changeOptions ...func(*server.Options)) installation {
	t.Helper()
	db := storetest.New(t, "sqlite")
	resolver, err := shortlink.New(shortlink.Options{})
	require.NoError(t, err)
	key, err := db.Secret(t.Context(), "cursor")
	require.NoError(t, err)
	o := server.Options{
		Store: db.Store, Resolver: resolver, AppURL: "https://app.example.test", CursorKey: key, Now: db.Clock.Now, Logger: slog.New(slog.DiscardHandler),
		Status: monitor.New(db.Store, nil, nil, boot.NewRegistry(), slog.New(slog.DiscardHandler)),
	}
	for _, f := range changeOptions {
		f(&o)
	}
	api, err := server.New(o)
	require.NoError(t, err)
	web := httptest.NewServer(api.Handler())
	t.Cleanup(func() {
		web.Close()
		api.Close()
	})

	org, err := db.CreateOrganisation(t.Context(), "Northwind", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	require.NoError(t, db.SetOperator(t.Context(), org.ID, true))
	_, token, err := db.CreateToken(t.Context(), org.ID, "browser", store.Scopes, 0)
	require.NoError(t, err)
	return installation{url: web.URL, token: token, db: db, org: org}
}

func (i installation) trackVideo(t *testing.T, link string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"link": link})
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.url+"/videos", strings.NewReader(string(body)))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+i.token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	var response struct{ VideoID string }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&response))
	require.NotEmpty(t, response.VideoID)
	return response.VideoID
}
