package serve_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/cmd/internal/monitor"
	"github.com/reeltally/reeltally/cmd/internal/serve"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// browserOf signs in to the dashboard with a token. The returned function requests a page of the dashboard with this session.
func browserOf(t *testing.T, base, token string) func(path string) (status int, body string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	do := func(method, path string, form url.Values) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(form.Encode()))
		require.NoError(t, err)
		if form != nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		response, err := client.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, string(body)
	}
	status, body := do(http.MethodPost, "/login", url.Values{"token": {token}})
	require.Equal(t, http.StatusOK, status, body)
	return func(path string) (int, string) { return do(http.MethodGet, path, nil) }
}

func TestOperationsPage_showsTheStatusOnlyToTheOperator(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	db.Clock.Set(time.Now()) // the server uses the machine's clock, so the test's database must have the same time
	other, operator := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
	clips := storetest.VideoLinks(t, 4)
	storetest.Track(t, other, clips...)
	storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{clips[0]: {Views: new(int64(5))}, clips[3]: {Views: new(int64(6))}})
	db.Exec(t, "UPDATE fetch_targets SET route = 'vendor:a', attempts = CASE WHEN external_id = ? THEN 0 ELSE 2 END, detail = 'HTTP 503: <b>busy</b>', fetched_at = ?", clips[0].ID, store.InstantOf(db.Clock.Now()))
	db.Exec(t, "UPDATE fetch_targets SET route = 'vendor:b', attempts = 0, detail = '' WHERE external_id = ?", clips[3].ID)
	db.Exec(t, "UPDATE fetch_targets SET lane = ? WHERE external_id = ?", queue.LaneBasic, clips[3].ID)
	storetest.StopVideos(t, other, clips[3])
	require.NoError(t, db.SetOperator(t.Context(), operator.ID(), true))
	token := func(org *store.Org, scopes ...store.Scope) string {
		_, secret, err := db.CreateToken(t.Context(), org.ID(), "N", scopes, 0)
		require.NoError(t, err)
		return secret
	}
	p := boottest.Start(t, serve.Command, nil, map[string]string{"REELTALLY_DATABASE_URL": db.URL, "REELTALLY_LISTEN": "127.0.0.1:0"})
	base := serverAddress(t, p)

	visit := browserOf(t, base, token(operator, store.Scopes...))
	status, page := visit("/operations")
	require.Equal(t, http.StatusOK, status, page)
	want, err := monitor.ReadStatus(t.Context(), db.Store, nil)
	require.NoError(t, err)
	require.Len(t, want.Platforms, 1)
	platform := want.Platforms[0]
	for _, n := range []int64{platform.Targets, platform.Fresh, platform.Stale, platform.Overdue, platform.Failing, platform.Parked, platform.Gone} {
		require.Contains(t, page, fmt.Sprintf(`<data value="%d">`, n))
	}
	require.Contains(t, page, `<span class="name">vendor:a</span><span class="small">TikTok</span>`)
	require.Contains(t, page, `data-label="Share failed">66.7 %<svg`)
	require.Contains(t, page, "HTTP 503: &lt;b&gt;busy&lt;/b&gt; (2 videos and accounts)")
	require.Equal(t, 1, strings.Count(page, "Last attempt failed</th>"), "two columns with different numbers must not have the same name")
	require.Contains(t, page, "Last attempt empty</th>")
	require.Contains(t, page, `<span class="name">vendor:b</span>`)
	require.Contains(t, page, `data-label="Share failed">0 %</td>`, "without a failed fetch, the page must show no bar")
	require.Contains(t, page, "<span>4 of 4 videos and accounts have numbers of the last 36 hours. 4 wait for numbers.</span></p>")
	require.Contains(t, page, "No backup with <code>reeltally backup</code> is known.")
	require.Contains(t, page, "Longest delay by the servers: 0 s")
	require.NotContains(t, page, ">Failing</th>", "the column \"Last attempt empty\" must not have the title \"Failing\", because the fetch status \"failing\" begins only at the second failed attempt")
	require.Contains(t, page, `data-label="Priority">new or refreshed</td>`)
	require.Contains(t, page, `data-label="Priority">no subscription, or no longer tracked</td>`, "a stopped video stays in the queue until its next fetch would be due")
	for _, word := range []string{">Lane<", ">interactive<", ">Parked<", "parked", ">Targets<", " target"} { // the page must not use the internal terms of the queue
		require.NotContains(t, page, word)
	}
	require.Contains(t, page, "Start the program <code>collector</code>")
	require.Contains(t, page, "No collector is running, so no source is known.")
	status, page = visit("/operations?status=pending")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, clips[1].Canonical)
	status, page = visit("/operations?status=x")
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, page, "The fetch status must be ok, pending, delayed, failing, private, gone, restricted or unsupported.")

	for _, secret := range []string{token(operator, store.ScopeRead, store.ScopeWrite), token(other, store.Scopes...)} {
		visit := browserOf(t, base, secret)
		status, page := visit("/operations")
		require.Equal(t, http.StatusNotFound, status)
		_, unknown := visit("/operations/unknown")
		require.NotContains(t, page, "Freshness")
		_, overview := visit("/")
		require.NotContains(t, overview, "Operations")
		require.NotEmpty(t, unknown)
	}
}

func TestOperationsPage_saysWhyAndUntilWhenAnswersOfASourceAreHeldBack(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	db.Clock.Set(time.Now()) // the server uses the machine's clock, so the test's database must have the same time
	operator := storetest.NewOrg(t, db)
	require.NoError(t, db.SetOperator(t.Context(), operator.ID(), true))
	_, secret, err := db.CreateToken(t.Context(), operator.ID(), "N", store.Scopes, 0)
	require.NoError(t, err)
	const cause = "15 of the last 20 answers say that a recently fetched video or account does not exist; such answers are held back since 2026-11-29T08:00:00Z, until at most half of the answers say so"
	budgets := []queue.Budget{{Name: "common", Limit: 10, Window: "today", Ends: time.Now().Add(time.Hour)}, {Name: "search"}}
	_, err = db.Heartbeat(t.Context(), store.NewID(), time.Hour, []queue.Source{{Name: "youtube", Budgets: budgets, HeldBack: cause}, {Name: "vendor:a", HeldBack: "<b>a fault</b>"}, {Name: "graph"}})
	require.NoError(t, err)
	p := boottest.Start(t, serve.Command, nil, map[string]string{"REELTALLY_DATABASE_URL": db.URL, "REELTALLY_LISTEN": "127.0.0.1:0"})
	status, page := browserOf(t, serverAddress(t, p), secret)("/operations")
	require.Equal(t, http.StatusOK, status, page)
	require.Equal(t, 1, strings.Count(page, cause), "the page must say it once, with the words of the status, although the source has two budgets")
	require.Contains(t, page, "&lt;b&gt;a fault&lt;/b&gt;", "a source without budgets can be held back, too")
	require.Equal(t, 2, strings.Count(page, "<span>answers held back</span>"), "the source graph is not held back")
}
