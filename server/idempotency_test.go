package server_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// postRequests returns a path and two different valid bodies for each POST operation, by operation id. The bodies are nil if the operation
// has no body.
func (c *caller) postRequests() map[string][3]any {
	c.t.Helper()
	const account, other = "https://www.tiktok.com/@southwind", "https://www.tiktok.com/@eastwind"
	tracked := c.track(videoURL(900)).String()
	second := c.track(videoURL(901)).String()
	followed := decode[client.TrackAccountResult](c.send(http.MethodPost, "/accounts", map[string]any{"link": account + ".one"}).requireStatus(http.StatusOK)).AccountID.String()
	secondAccount := decode[client.TrackAccountResult](c.send(http.MethodPost, "/accounts", map[string]any{"link": account + ".two"}).requireStatus(http.StatusOK)).AccountID.String()
	collection := "/collections/" + c.createCollection(map[string]any{"name": "Members"}).String()
	hook := c.createWebhook("https://hooks.example.com/")
	webhook := "/webhooks/" + hook.ID.String()
	delivery := c.testWebhook(hook.ID).ID.String()
	return map[string][3]any{
		"trackVideo":            {"/videos", map[string]any{"link": videoURL(1)}, map[string]any{"link": videoURL(2)}},
		"trackVideos":           {"/videos/bulk", map[string]any{"links": []string{videoURL(3)}}, map[string]any{"links": []string{videoURL(4)}}},
		"trackAccount":          {"/accounts", map[string]any{"link": account}, map[string]any{"link": other}},
		"trackAccounts":         {"/accounts/bulk", map[string]any{"links": []string{account + ".bulk"}}, map[string]any{"links": []string{other + ".bulk"}}},
		"createCollection":      {"/collections", map[string]any{"name": "Launch"}, map[string]any{"name": "Landing"}},
		"addCollectionVideos":   {collection + "/videos", map[string]any{"video_ids": []string{tracked}}, map[string]any{"video_ids": []string{second}}},
		"addCollectionAccounts": {collection + "/accounts", map[string]any{"account_ids": []string{followed}}, map[string]any{"account_ids": []string{secondAccount}}},
		"createToken":           {"/tokens", map[string]any{"name": "Script", "scopes": []string{"read"}}, map[string]any{"name": "Import", "scopes": []string{"write"}}},
		"createWebhook":         {"/webhooks", map[string]any{"url": "https://hooks.example.com/1"}, map[string]any{"url": "https://hooks.example.com/2"}},
		"testWebhook":           {webhook + "/test", nil, nil},
		"rotateWebhookSecret":   {webhook + "/rotate-secret", nil, nil},
		"replayWebhookDelivery": {webhook + "/deliveries/" + delivery + "/replay", nil, nil},
		"createReport":          {collection + "/reports", map[string]any{}, map[string]any{"include_children": true}},
		"refreshVideo":          {"/refresh/videos", map[string]any{"link": tracked}, map[string]any{"link": second}},
		"refreshAccount":        {"/refresh/accounts", map[string]any{"link": followed}, map[string]any{"link": secondAccount}},
	}
}

// idsOfPOSTOperations returns the ids of all operations in openapi.yaml that have the method POST.
func idsOfPOSTOperations() []string {
	var ids []string
	for _, item := range sharedContract().doc.Paths.Map() {
		if item.Post != nil {
			ids = append(ids, item.Post.OperationID)
		}
	}
	return ids
}

// secretMember matches the secret in the response of an operation that creates a token or a webhook, or replaces a webhook's secret.
var secretMember = regexp.MustCompile(`"secret":"(rt_[A-Za-z0-9]{46}|whsec_[A-Za-z0-9+/=]{44})"`)

// requireReplayed requires that two responses have the same body. The second body may have null
// instead of a secret, because the server does not store secrets.
func requireReplayed(t *testing.T, first, second response) {
	t.Helper()
	want := string(first.body)
	if secretMember.Match(first.body) && want != string(second.body) {
		require.JSONEq(t, secretMember.ReplaceAllString(want, `"secret":null`), string(second.body))
		return
	}
	require.Equal(t, want, string(second.body), first.Request.URL)
}

func TestIdempotency_secondRequestWithTheSameKeyGetsTheFirstResponse(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		requests := c.postRequests()
		require.ElementsMatch(t, idsOfPOSTOperations(), slices.Collect(maps.Keys(requests)), "postRequests must contain each POST operation")
		for id, request := range requests {
			path := request[0].(string)
			send := func(body any, key string) response {
				return c.send(http.MethodPost, path, body, "Idempotency-Key", key)
			}
			key := "first-" + id
			first := send(request[1], key)
			require.Less(t, first.StatusCode, 300, "%s: %s", id, first.body)
			require.Empty(t, first.Header.Get("Idempotent-Replayed"), id)

			again := send(request[1], key).requireStatus(first.StatusCode)
			requireReplayed(t, first, again)
			require.Equal(t, first.Header.Get("Content-Type"), again.Header.Get("Content-Type"), id)
			require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"), id)

			if request[2] != nil { // request[2] is another request body; it is nil if the operation has no request body
				send(request[2], key).requireProblem(http.StatusUnprocessableEntity, server.CodeIdempotencyKeyReused)
			}

			// Change the database so that the first request seems to be still running.
			a.Exec(t, "UPDATE idempotency_keys SET status = NULL, started_at = ? WHERE key = ?", store.InstantOf(a.Clock.Now()), key)
			running := send(request[1], key)
			running.requireProblem(http.StatusConflict, server.CodeIdempotencyKeyInUse)
			require.Equal(t, "1", running.Header.Get("Retry-After"), id)

			// Another organisation can use the same Idempotency-Key for another request.
			if id == "createCollection" {
				a.newCaller(t, store.TierPremium).send(http.MethodPost, path, request[2], "Idempotency-Key", key).requireStatus(http.StatusCreated)
			}
			a.Clock.Advance(24*time.Hour + time.Second)
			require.Empty(t, send(request[2], key).Header.Get("Idempotent-Replayed"), "%s: the key must expire after 24 hours", id)
		}
	})
}

func TestIdempotency_comparesTheDecodedBodiesOfRequests(t *testing.T) {
	t.Parallel()
	c := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium)
	send := func(body string) response {
		return c.send(http.MethodPost, "/collections", body, "Idempotency-Key", "k")
	}
	first := send(`{"name": "Launch", "hashtags": ["one", "two"]}`).requireStatus(http.StatusCreated)
	require.Equal(t, string(first.body), string(send("{\n\"hashtags\":[\"one\",\"\\u0074wo\"],\"name\":\"Launch\"}").requireStatus(http.StatusCreated).body))
	send(`{"name": "Launch", "hashtags": ["two", "one"]}`).requireProblem(http.StatusUnprocessableEntity, server.CodeIdempotencyKeyReused)
	// The same Idempotency-Key can be used for another operation.
	c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(1)}, "Idempotency-Key", "k").requireStatus(http.StatusOK)
}

func TestIdempotency_replays404ButNot400Responses(t *testing.T) {
	t.Parallel()
	c := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium)
	send := func(body, key string) response {
		return c.send(http.MethodPost, "/collections", body, "Idempotency-Key", key)
	}
	send(`{"nome": "Launch"}`, "k").requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	send(`{"name": "Launch"}`, "k").requireStatus(http.StatusCreated)

	bodyWithUnknownParent := fmt.Sprintf(`{"name": "Launch", "parent_id": %q}`, unknownID)
	first := send(bodyWithUnknownParent, "l").requireProblem(http.StatusNotFound, server.CodeNotFound)
	again := send(bodyWithUnknownParent, "l")
	require.Equal(t, first, again.requireProblem(http.StatusNotFound, server.CodeNotFound), "the response to a repeated request must be the stored response, also its request id")
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))

	for _, bad := range []string{"with space", "ключ", string(make([]byte, 256))} {
		if bad[0] == 0 {
			bad = fmt.Sprintf("%0256d", 1)
		}
		p := send(`{"name": "x"}`, bad).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Equal(t, "Idempotency-Key", *p.Errors[0].Name)
		require.Equal(t, client.FaultLocationHeader, p.Errors[0].Location)
	}
}

func TestIdempotency_retryAfterACrashReturnsTheSameCollectionID(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		send := func() response {
			return c.send(http.MethodPost, "/collections", map[string]any{"name": "Launch"}, "Idempotency-Key", "k")
		}
		made := decode[client.CreatedCollection](send().requireStatus(http.StatusCreated))
		// Change the database as if the server had crashed after it created the collection and before it stored the response.
		a.Exec(t, "UPDATE idempotency_keys SET status = NULL, body = NULL")
		a.Clock.Advance(4500 * time.Millisecond)
		interrupted := send()
		p := interrupted.requireProblem(http.StatusConflict, server.CodeIdempotencyKeyInUse)
		require.Contains(t, p.Detail, "or it was interrupted. Send the request again in 11 seconds.")
		require.Equal(t, "11", interrupted.Header.Get("Retry-After"), "Retry-After must be the time until the key is free, in seconds")
		a.Clock.Advance(11 * time.Second)
		again := send().requireStatus(http.StatusCreated)
		require.Empty(t, again.Header.Get("Idempotent-Replayed"))
		require.Equal(t, made.ID, decode[client.CreatedCollection](again).ID)
		require.Len(t, storetest.Column[string](t, a.DB, "SELECT id FROM collections"), 1)
	})
}

// TestIdempotency_repetitionAfterACrashHasNoSecondEffect deletes the stored response of each request, as if the server had crashed before it stored
// the response. If the request is then repeated, the server runs the operation again. The operation must create nothing a second time.
func TestIdempotency_repetitionAfterACrashHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		repeat := func(c *caller, method, path string, body any, id string) (first, again response) {
			send := func() response { return c.send(method, path, body, "Idempotency-Key", "crash-"+id) }
			first = send()
			require.Less(t, first.StatusCode, 300, "%s: %s", id, first.body)
			before := a.rowCounts(t)
			a.Exec(t, "UPDATE idempotency_keys SET status = NULL, content_type = NULL, body = NULL WHERE key = ?", "crash-"+id)
			a.Clock.Advance(store.KeyLease + time.Second)
			again = send()
			require.Empty(t, again.Header.Get("Idempotent-Replayed"), id)
			require.Equal(t, before, a.rowCounts(t), id)
			return first, again
		}
		c := a.newCaller(t, store.TierPremium)
		describesTheState := []string{"trackVideo", "trackVideos", "trackAccount", "trackAccounts", "addCollectionVideos", "addCollectionAccounts"}
		for id, request := range c.postRequests() {
			first, again := repeat(c, http.MethodPost, request[0].(string), request[1], id)
			require.Equal(t, first.StatusCode, again.StatusCode, "%s: %s", id, again.body)
			if !slices.Contains(describesTheState, id) {
				withoutSecret := func(r response) string { return secretMember.ReplaceAllString(string(r.body), "") }
				require.Equal(t, withoutSecret(first), withoutSecret(again), id)
			}
		}
		other := a.newCaller(t, store.TierPremium)
		for id, requests := range other.stopRequests() {
			_, again := repeat(other, http.MethodDelete, requests[0].path, requests[0].body, id)
			require.Contains(t, []int{http.StatusNotFound, http.StatusMultiStatus}, again.StatusCode, "%s: the repetition must find nothing to stop", id)
		}
	})
}

// rowCounts returns the numbers of rows of tables to which requests add rows, and the numbers of stopped videos and accounts.
func (a *app) rowCounts(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, from := range []string{"collections", "collection_videos", "collection_accounts", "collection_hashtags", "reports", "api_tokens", "webhooks", "webhook_deliveries",
		"events", "videos", "accounts", "videos WHERE removed", "accounts WHERE removed", "fetch_targets", "fetch_subscriptions"} {
		counts[from] = storetest.Column[int](t, a.DB, "SELECT COUNT(*) FROM "+from)[0]
	}
	return counts
}

// TestIdempotency_longRequestKeepsItsKey sends a request that creates a collection. Before the
// INSERT, the request waits until the server renews the lease of the key.
func TestIdempotency_longRequestKeepsItsKey(t *testing.T) {
	t.Parallel()
	// On SQLite, the renewal would wait for the transaction of the request.
	a := newApp(t, storetest.New(t, "postgres"))
	c := a.newCaller(t, store.TierPremium)
	send := func() response {
		return c.send(http.MethodPost, "/collections", map[string]any{"name": "Launch"}, "Idempotency-Key", "k")
	}
	var during response
	a.Guard.BeforeStatement(`INSERT INTO "collections"`, func() {
		a.Clock.Advance(2 * store.KeyLease) // advance the clock past the end of the lease
		now := store.InstantOf(a.Clock.Now())
		require.Eventually(t, func() bool {
			return storetest.Column[store.Instant](t, a.DB, "SELECT started_at FROM idempotency_keys")[0] == now
		}, 4*store.KeyLease, 50*time.Millisecond, "the server must renew the lease")
		during = send()
	})
	send().requireStatus(http.StatusCreated)
	during.requireProblem(http.StatusConflict, server.CodeIdempotencyKeyInUse)
	require.Equal(t, "15", during.Header.Get("Retry-After"))
	require.Equal(t, "true", send().requireStatus(http.StatusCreated).Header.Get("Idempotent-Replayed"))
}

func TestIdempotency_keyCanBeUsedAgainAfterATemporaryFailure(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		const short = "https://vm.tiktok.com/ZMabcdef1/"
		a.platforms.redirect(short, "") // the platform answers the request for the short link with status 502
		send := func() response {
			return c.send(http.MethodPost, "/videos", map[string]any{"link": short}, "Idempotency-Key", "k")
		}
		send().requireProblem(http.StatusServiceUnavailable, server.CodeLinkUnresolved)
		a.platforms.redirect(short, videoURL(1))
		send().requireStatus(http.StatusOK)
	})
}

// TestIdempotency_keyCanBeUsedAgainAfterAPanic makes the handler of a request panic, so the response has status 500. A later request with
// the same Idempotency-Key must succeed.
func TestIdempotency_keyCanBeUsedAgainAfterAPanic(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	track := func() response {
		return c.send(http.MethodPost, "/videos", map[string]any{"link": tiktokLink}, "Idempotency-Key", "k")
	}
	a.panicAt.Store(new("videos"))
	for range 2 {
		track().requireProblem(http.StatusInternalServerError, server.CodeInternal)
	}
	a.panicAt.Store(nil)
	track().requireStatus(http.StatusOK)
}

func TestIdempotency_onlyOneOfSeveralConcurrentRequestsHasAnEffect(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		for id, request := range c.postRequests() {
			responses := c.sendConcurrently(http.MethodPost, request[0].(string), request[1], "Idempotency-Key", "k")
			var first *response
			for _, got := range responses {
				if got.StatusCode == http.StatusConflict {
					continue
				}
				require.Less(t, got.StatusCode, 300, "%s: %s", id, got.body)
				if got.Header.Get("Idempotent-Replayed") == "" {
					require.Nil(t, first, "%s: all responses except the first must have the header Idempotent-Replayed", id)
					first = &got
				}
			}
			require.NotNil(t, first, id)
			for _, got := range responses {
				if got.StatusCode != http.StatusConflict {
					requireReplayed(t, *first, got)
				}
			}
		}
		require.Len(t, storetest.Column[string](t, a.DB, "SELECT id FROM collections WHERE name = 'Launch'"), 1)
	})
}

func TestIdempotency_requestHasNoEffectIfTheDatabaseFails(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.send(http.MethodGet, "/authenticate", nil).requireStatus(http.StatusOK)
	failure := errors.New("disk I/O error")
	a.databaseError.Store(&failure)
	require.GreaterOrEqual(t, c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(1)}, "Idempotency-Key", "k").StatusCode, 500)
	a.databaseError.Store(nil)
	require.Empty(t, storetest.Column[string](t, a.DB, "SELECT id FROM videos"))
}

func TestIdempotency_refusesNewKeysIfTheStorageForResponsesIsFull(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c, other := a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium)
	send := func(c *caller, key string) response {
		return c.send(http.MethodPost, "/collections", map[string]any{"name": "Launch"}, "Idempotency-Key", key)
	}
	first := send(c, "first").requireStatus(http.StatusCreated)
	a.Exec(t, "UPDATE idempotency_usage SET bytes = ?", store.IdempotencyLimit)

	refused := send(c, "second")
	p := refused.requireProblem(http.StatusTooManyRequests, server.CodeIdempotencyStoreFull)
	require.Contains(t, p.Detail, "without an Idempotency-Key")
	require.Contains(t, p.Detail, "128 MiB")
	require.Equal(t, "86400", refused.Header.Get("Retry-After"), "Retry-After must be the time until the oldest key expires, in seconds")
	require.Equal(t, string(first.body), string(send(c, "first").requireStatus(http.StatusCreated).body))
	c.send(http.MethodPost, "/collections", map[string]any{"name": "Launch"}).requireStatus(http.StatusCreated)
	send(other, "second").requireStatus(http.StatusCreated)

	a.Clock.Advance(24*time.Hour + time.Second)
	send(c, "second").requireStatus(http.StatusCreated)
}
