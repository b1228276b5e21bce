package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// allowPrivateWebhooks allows webhooks with http URLs and loopback addresses, so that events can be sent to test servers.
func allowPrivateWebhooks(o *server.Options) { o.Webhooks.AllowPrivate = true }

// runWebhookTest calls runTest once for each database engine, with a server that can send events to test servers.
func runWebhookTest(t *testing.T, runTest func(t *testing.T, a *app)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) { runTest(t, newApp(t, db, allowPrivateWebhooks)) })
}

// createWebhook sends POST /webhooks and returns the created webhook.
func (c *caller) createWebhook(url string, types ...store.EventType) client.CreatedWebhook {
	c.t.Helper()
	body := map[string]any{"url": url}
	if len(types) > 0 {
		body["event_types"] = types
	}
	return decode[client.CreatedWebhook](c.send(http.MethodPost, "/webhooks", body).requireStatus(http.StatusCreated))
}

// testWebhook requests a test event for a webhook. It returns the delivery of the event, which is not sent yet.
func (c *caller) testWebhook(id uuid.UUID) client.WebhookDelivery {
	c.t.Helper()
	return decode[client.WebhookDelivery](c.send(http.MethodPost, "/webhooks/"+id.String()+"/test", nil).requireStatus(http.StatusAccepted))
}

// deliveries returns the deliveries to a webhook, the newest first.
func (c *caller) deliveries(webhook uuid.UUID) []client.WebhookDelivery {
	c.t.Helper()
	return decode[client.WebhookDeliveryPage](c.send(http.MethodGet, "/webhooks/"+webhook.String()+"/deliveries", nil).requireStatus(http.StatusOK)).Data
}

// events returns the decoded response of GET /events with the given query: events and the cursor of the next page.
func (c *caller) events(query string) client.EventFeed {
	c.t.Helper()
	return decode[client.EventFeed](c.send(http.MethodGet, "/events"+query, nil).requireStatus(http.StatusOK))
}

// sendDueEvents sends all events that are due, and waits until all attempts have ended.
func (a *app) sendDueEvents(t *testing.T) {
	t.Helper()
	require.NoError(t, a.server.SendDueWebhooks(t.Context()))
}

// requireValidSignature requires that the library standard-webhooks accepts the request's
// signature. The timestamp is ignored, because the library cannot use the test clock.
func (r received) requireValidSignature(t *testing.T, secret string) {
	t.Helper()
	library, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	require.NoError(t, library.VerifyIgnoringTimestamp(r.body, r.header))
}

func eventTypesOf(requests []received) []string {
	var types []string
	for _, r := range requests {
		var e struct{ Type string }
		if err := json.Unmarshal(r.body, &e); err == nil {
			types = append(types, e.Type)
		}
	}
	return types
}

// Requirements in docs/coverage.md: 14.5-01
func TestWebhooks_sendSignedEvents(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, r := a.newCaller(t, store.TierPremium), newReceiver(t)
		id := c.track(tiktokLink)
		a.fetch(factsWithViews(900))
		hook := c.createWebhook(r.URL + "/hook?a=b")
		require.Regexp(t, `^whsec_`, *hook.Secret)
		a.sendDueEvents(t)
		require.Empty(t, r.takeRequests(), "events from before the webhook was made must not be sent")

		a.Clock.Advance(24 * time.Hour)
		a.fetch(factsWithViews(12_000))
		a.sendDueEvents(t)
		got := r.takeRequests()
		require.ElementsMatch(t, []string{"video.metrics.updated", "video.milestone.reached", "video.milestone.reached"}, eventTypesOf(got))
		feed := c.events("")
		require.Len(t, feed.Data, 3)
		for _, request := range got {
			request.requireValidSignature(t, *hook.Secret)
			require.Equal(t, "application/json", request.header.Get("Content-Type"))
			var e client.Event
			require.NoError(t, json.Unmarshal(request.body, &e))
			require.Equal(t, e.ID.String(), request.header.Get("webhook-id"))
			require.Contains(t, feed.Data, e)
			require.Equal(t, id, e.Data.Video.AdID)
			require.EqualValues(t, 12_000, *e.Data.Video.LatestViews)
			require.Nil(t, e.Data.Video.LatestLikes)
			require.EqualValues(t, 900, *e.Data.Video.Previous.LatestViews)
		}
		for _, d := range c.deliveries(hook.ID) {
			require.Equal(t, client.WebhookDeliveryStatusDelivered, d.Status)
			require.EqualValues(t, 200, *d.ResponseStatus)
			require.EqualValues(t, 1, d.Attempts)
		}
		a.sendDueEvents(t)
		require.Empty(t, r.takeRequests())
		require.NotContains(t, a.log.String(), *hook.Secret)

		c.send(http.MethodDelete, "/videos/"+id.String(), nil).requireStatus(http.StatusOK)
		a.sendDueEvents(t)
		got = r.takeRequests()
		require.Equal(t, []string{"video.removed"}, eventTypesOf(got))
		require.Contains(t, string(got[0].body), `"removed":true`)
	})
}

// Requirements in docs/coverage.md: 14.5-02
func TestWebhooks_retryAFailedDeliveryForADay(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, r := a.newCaller(t, store.TierPremium), newReceiver(t)
		hook := c.createWebhook(r.URL)
		r.answerWithFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "not \x00 now "+strings.Repeat("ü", 2000), http.StatusServiceUnavailable)
		})
		made := decode[client.WebhookDelivery](c.send(http.MethodPost, "/webhooks/"+hook.ID.String()+"/test", nil).requireStatus(http.StatusAccepted))
		require.Equal(t, client.WebhookDeliveryStatusPending, made.Status)
		start := a.Clock.Now()
		attempts := 0
		for {
			a.sendDueEvents(t)
			got := r.takeRequests()
			require.Len(t, got, 1)
			require.Equal(t, made.EventID.String(), got[0].header.Get("webhook-id"))
			attempts++
			d := c.deliveries(hook.ID)[0]
			require.EqualValues(t, attempts, d.Attempts)
			require.Equal(t, "The response has status 503.", *d.Error)
			require.Contains(t, *d.ResponseBody, "not  now ü")
			require.LessOrEqual(t, len(*d.ResponseBody), 1024)
			if d.NextAttemptAt == nil {
				require.Equal(t, client.WebhookDeliveryStatusFailed, d.Status)
				break
			}
			a.sendDueEvents(t)
			require.Empty(t, r.takeRequests(), "no event may be sent before the next attempt is due")
			a.Clock.Advance(d.NextAttemptAt.Sub(a.Clock.Now()))
		}
		require.Equal(t, 9, attempts)
		require.GreaterOrEqual(t, a.Clock.Now().Sub(start), 24*time.Hour)

		r.answerWithStatus(http.StatusNoContent)
		again := decode[client.WebhookDelivery](c.send(http.MethodPost, fmt.Sprintf("/webhooks/%s/deliveries/%s/replay", hook.ID, made.ID), nil).requireStatus(http.StatusAccepted))
		require.NotEqual(t, made.ID, again.ID)
		a.sendDueEvents(t)
		require.Equal(t, made.EventID.String(), r.takeRequests()[0].header.Get("webhook-id"))
		require.Equal(t, client.WebhookDeliveryStatusDelivered, c.deliveries(hook.ID)[0].Status)
		require.NotNil(t, decode[client.Webhook](c.send(http.MethodGet, "/webhooks/"+hook.ID.String(), nil).requireStatus(http.StatusOK)).LastSuccessAt)
	})
}

func TestWebhooks_sendOnlyOneEventUntilTheReceiverAcceptsEventsAgain(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, r := a.newCaller(t, store.TierPremium), newReceiver(t)
		for n := range 3 {
			c.track(videoURL(n))
		}
		c.createWebhook(r.URL, store.EventVideoMetrics)
		r.answerWithStatus(http.StatusServiceUnavailable)
		a.fetch(factsWithViews(5))
		a.sendDueEvents(t)
		require.Len(t, r.takeRequests(), 3)
		a.Clock.Advance(10 * time.Second)
		a.sendDueEvents(t)
		require.Len(t, r.takeRequests(), 1, "after the pause, the server must send exactly one event")
		c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(3)}).requireStatus(http.StatusOK)
		a.fetch(factsWithViews(6))
		a.sendDueEvents(t)
		require.Empty(t, r.takeRequests(), "no event may be sent during the pause after a failure")
		r.answerWithStatus(http.StatusOK)
		a.Clock.Advance(2 * time.Minute)
		a.sendDueEvents(t)
		require.Len(t, r.takeRequests(), 4)
	})
}

func TestCreateWebhook_storesEachEventTypeOnce(t *testing.T) {
	t.Parallel()
	c := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium)
	w := c.createWebhook("https://hooks.example.com/1", store.EventVideoRemoved, store.EventVideoMilestone, store.EventVideoRemoved)
	require.Equal(t, client.EventTypes{"video.removed", "video.milestone.reached"}, w.EventTypes)
}

func TestWebhooks_idempotencyKeyCannotBeReusedForAnotherWebhook(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	first, second := c.createWebhook("https://hooks.example.com/1"), c.createWebhook("https://hooks.example.com/2")
	delivery := c.testWebhook(first.ID).ID.String()
	for n, operation := range []string{"/test", "/rotate-secret", "/deliveries/" + delivery + "/replay"} {
		key := fmt.Sprint("key-", n)
		require.Less(t, c.send(http.MethodPost, "/webhooks/"+first.ID.String()+operation, nil, "Idempotency-Key", key).StatusCode, 300)
		c.send(http.MethodPost, "/webhooks/"+second.ID.String()+operation, nil, "Idempotency-Key", key).requireProblem(http.StatusUnprocessableEntity, server.CodeIdempotencyKeyReused)
	}
}

// Requirements in docs/coverage.md: 14.5-03
func TestWebhooks_areDisabledByStatus410(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, r, other := a.newCaller(t, store.TierPremium), newReceiver(t), newReceiver(t)
		hook := c.createWebhook(r.URL)
		c.createWebhook(other.URL, store.EventWebhookDisabled)
		r.answerWithStatus(http.StatusGone)
		path := "/webhooks/" + hook.ID.String()
		c.send(http.MethodPost, path+"/test", nil).requireStatus(http.StatusAccepted)
		a.sendDueEvents(t)
		require.Len(t, r.takeRequests(), 1)
		got := decode[client.Webhook](c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK))
		require.False(t, got.Enabled)
		require.Equal(t, "gone", *got.DisabledReason)
		require.Equal(t, []string{"webhook.disabled"}, eventTypesOf(other.takeRequests()))
		feed := c.events("?types=webhook.disabled")
		require.Len(t, feed.Data, 1)
		require.Equal(t, hook.ID, feed.Data[0].Data.Webhook.ID)
		c.send(http.MethodPost, path+"/test", nil).requireProblem(http.StatusConflict, server.CodeWebhookDisabled)
		c.send(http.MethodPost, path+"/deliveries/"+c.deliveries(hook.ID)[0].ID.String()+"/replay", nil).requireProblem(http.StatusConflict, server.CodeWebhookDisabled)

		r.answerWithStatus(http.StatusOK)
		enabled := decode[client.Webhook](c.send(http.MethodPatch, path, map[string]any{"enabled": true}).requireStatus(http.StatusOK))
		require.True(t, enabled.Enabled)
		require.Nil(t, enabled.DisabledReason)
		a.Clock.Advance(time.Minute)
		a.sendDueEvents(t)
		require.Equal(t, []string{"webhook.test"}, eventTypesOf(r.takeRequests()), "the delivery must have attempts left")
	})
}

// Requirements in docs/coverage.md: 14.5-03
func TestWebhooks_areDisabledAfterThreeDaysOfFailures(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, r := a.newCaller(t, store.TierPremium), newReceiver(t)
		hook := c.createWebhook(r.URL)
		path := "/webhooks/" + hook.ID.String()
		r.answerWithStatus(http.StatusInternalServerError)
		for day := range 4 {
			require.True(t, decode[client.Webhook](c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK)).Enabled, "day %d", day)
			c.send(http.MethodPost, path+"/test", nil).requireStatus(http.StatusAccepted)
			a.sendDueEvents(t)
			a.Clock.Advance(24 * time.Hour)
		}
		got := decode[client.Webhook](c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK))
		require.False(t, got.Enabled)
		require.Equal(t, "failing", *got.DisabledReason)
		require.Len(t, c.events("?types=webhook.disabled").Data, 1)
	})
}

func TestWebhooks_refuseURLsThatNoRequestCanReach(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for _, url := range []string{"https://example.com:99999/", "https://example.com:65536/", "https://example.com:0/", "https://a..b/", "https://.example.com/", "https://-a.example.com/",
		"https://a-.example.com/", "https://a,b.example.com/", "https://" + strings.Repeat("a", 64) + ".com/", "https://" + strings.Repeat("a.", 127) + "com/"} {
		p := c.send(http.MethodPost, "/webhooks", map[string]any{"url": url}).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Equal(t, "invalid_url", p.Errors[0].Code)
		require.Contains(t, p.Detail, url[:min(len(url), 99)])
	}
	for host, why := range map[string]string{"localhost": "a name of the machine itself", "LOCALHOST.": "a name of the machine itself", "a.localhost": "a name of the machine itself",
		"printer.local": "a name of a local network", "db.internal": "a name of a local network", "nas.home.arpa": "a name of a local network", "intranet": "a name of a local network",
		"a.invalid": "a name that never resolves", "127.1": "no valid host name, because its last part is a number", "2130706433": "no valid host name, because its last part is a number", "0x7f.0.0.0x1": "no valid host name, because its last part is a number"} {
		p := c.send(http.MethodPost, "/webhooks", map[string]any{"url": "https://" + host + "/"}).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Equal(t, "invalid_url", p.Errors[0].Code)
		require.Contains(t, p.Errors[0].Detail, "\""+host+"\", which is "+why)
	}
	for _, url := range []string{"https://example.com:65535/", "https://example.com./", "https://my_host.xn--gr-mka.example.com/", "https://[2606:4700::1111]:8443/", "https://1.1.1.1/"} {
		c.createWebhook(url)
	}
}

// Requirements in docs/coverage.md: 14.5-04
func TestWebhooks_followNoRedirectAndReachNoPrivateAddress(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		t.Run("redirect", func(t *testing.T) {
			a := newApp(t, db, allowPrivateWebhooks)
			c, r, inside := a.newCaller(t, store.TierPremium), newReceiver(t), newReceiver(t)
			hook := c.createWebhook(r.URL)
			r.answerWithFunc(func(w http.ResponseWriter, request *http.Request) {
				http.Redirect(w, request, inside.URL, http.StatusTemporaryRedirect)
			})
			c.send(http.MethodPost, "/webhooks/"+hook.ID.String()+"/test", nil).requireStatus(http.StatusAccepted)
			a.sendDueEvents(t)
			require.Len(t, r.takeRequests(), 1)
			require.Empty(t, inside.takeRequests())
			require.Equal(t, "The response has status 307. Redirects are not followed.", *c.deliveries(hook.ID)[0].Error)
		})
		t.Run("private address", func(t *testing.T) {
			a := newApp(t, db, func(o *server.Options) {
				o.Webhooks.Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
				}
			})
			c, inside := a.newCaller(t, store.TierPremium), newReceiver(t)
			for _, url := range []string{"http://example.com/", "https://127.0.0.1/", "https://[::1]/", "https://10.1.2.3:8443/x", "https://169.254.169.254/", "https://user@example.com/",
				"https://user:secret@example.com/", "https://example.com/#x", "https://", "https:///x", "ftp://example.com/", "https://exa mple.com", "https://ÞÜ/", "https://example.com/größe",
				"https://example.com/{x}", "https://example.com/?a=%zz", "https://example.com/[x]", "https://example.com/?a[]=1"} {
				c.send(http.MethodPost, "/webhooks", map[string]any{"url": url}).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			}
			hook := c.createWebhook(strings.Replace(inside.URL, "http://127.0.0.1", "https://hooks.example.com", 1))
			c.send(http.MethodPost, "/webhooks/"+hook.ID.String()+"/test", nil).requireStatus(http.StatusAccepted)
			a.sendDueEvents(t)
			require.Empty(t, inside.takeRequests())
			d := c.deliveries(hook.ID)[0]
			require.Equal(t, "The host has no address to which events may be sent.", *d.Error)
			require.Nil(t, d.ResponseStatus)
			c.send(http.MethodPatch, "/webhooks/"+hook.ID.String(), map[string]any{"url": "https://192.168.0.1"}).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		})
	})
}

func TestWebhooks_aSlowReceiverDoesNotDelayOtherReceivers(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		slow, fast := newReceiver(t), newReceiver(t)
		release := make(chan struct{})
		slow.answerWithFunc(func(http.ResponseWriter, *http.Request) { <-release })
		arrived := make(chan struct{}, 1)
		fast.answerWithFunc(func(http.ResponseWriter, *http.Request) { arrived <- struct{}{} })
		for _, r := range []*receiver{slow, fast} {
			c := a.newCaller(t, store.TierPremium)
			c.send(http.MethodPost, "/webhooks/"+c.createWebhook(r.URL).ID.String()+"/test", nil).requireStatus(http.StatusAccepted)
		}
		done := make(chan error, 1)
		go func() { done <- a.server.SendDueWebhooks(t.Context()) }()
		<-arrived
		close(release)
		require.NoError(t, <-done)
		require.Len(t, slow.takeRequests(), 1)
	})
}

// Requirements in docs/coverage.md: 14.5-08
func TestWebhooks_ofOtherOrganisationsAreUnknown(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		theirs, mine, r := a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium), newReceiver(t)
		hook := theirs.createWebhook(r.URL)
		path := "/webhooks/" + hook.ID.String()
		theirs.send(http.MethodPost, path+"/test", nil).requireStatus(http.StatusAccepted)
		delivery := theirs.deliveries(hook.ID)[0].ID.String()
		for _, request := range [][2]string{{http.MethodGet, path}, {http.MethodDelete, path}, {http.MethodPost, path + "/test"}, {http.MethodPost, path + "/rotate-secret"},
			{http.MethodGet, path + "/deliveries"}, {http.MethodPost, path + "/deliveries/" + delivery + "/replay"}} {
			mine.send(request[0], request[1], nil).requireProblem(http.StatusNotFound, server.CodeNotFound)
		}
		mine.send(http.MethodPatch, path, map[string]any{"enabled": false}).requireProblem(http.StatusNotFound, server.CodeNotFound)
		own := mine.createWebhook(r.URL)
		mine.send(http.MethodPost, "/webhooks/"+own.ID.String()+"/deliveries/"+delivery+"/replay", nil).requireProblem(http.StatusNotFound, server.CodeNotFound)
		require.Empty(t, mine.events("").Data)
		listed := decode[client.WebhookList](mine.send(http.MethodGet, "/webhooks", nil).requireStatus(http.StatusOK)).Data
		require.Len(t, listed, 1)
		theirs.send(http.MethodGet, path, nil).requireStatus(http.StatusOK)
	})
}

func TestCreateWebhook_refusesMoreWebhooksThanTheLimit(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		for n := range store.MaxWebhooks {
			c.createWebhook(fmt.Sprintf("https://hooks.example.com/%d", n))
		}
		p := c.send(http.MethodPost, "/webhooks", map[string]any{"url": "https://hooks.example.com/x"}).requireProblem(http.StatusConflict, server.CodeTooManyWebhooks)
		require.Contains(t, p.Detail, "20 webhooks")
		listed := decode[client.WebhookList](c.send(http.MethodGet, "/webhooks", nil).requireStatus(http.StatusOK))
		c.send(http.MethodDelete, "/webhooks/"+listed.Data[0].ID.String(), nil).requireStatus(http.StatusNoContent)
		c.send(http.MethodGet, "/webhooks/"+listed.Data[0].ID.String(), nil).requireProblem(http.StatusNotFound, server.CodeNotFound)
		c.createWebhook("https://hooks.example.com/x")
	})
}

// Requirements in docs/coverage.md: 14.5-09
func TestWebhooks_maskMetricsForTiersThatDoNotShowThem(t *testing.T) {
	t.Parallel()
	runWebhookTest(t, func(t *testing.T, a *app) {
		c, r := a.newCaller(t, store.TierBasic), newReceiver(t)
		c.createWebhook(r.URL)
		c.track(tiktokLink)
		a.fetch(factsWithViews(777_777))
		a.Clock.Advance(24 * time.Hour)
		a.fetch(factsWithViews(1_888_888))
		a.sendDueEvents(t)
		got := r.takeRequests()
		require.Len(t, got, 3)
		feed := c.events("?limit=2")
		require.Len(t, feed.Data, 2, "the limit of one row for lower tiers must not apply to events")
		require.True(t, feed.HasMore)
		require.Len(t, c.events("?limit=2&cursor="+feed.NextCursor).Data, 1)
		whole := string(c.send(http.MethodGet, "/events", nil).requireStatus(http.StatusOK).body)
		for _, request := range got {
			whole += string(request.body)
			require.Contains(t, string(request.body), `"metrics_masked":true`)
		}
		var decoded any
		require.NoError(t, json.Unmarshal(c.send(http.MethodGet, "/events", nil).requireStatus(http.StatusOK).body, &decoded))
		require.NotEmpty(t, objectsWithMetrics(decoded))
		for _, object := range objectsWithMetrics(decoded) {
			for name, value := range object {
				require.False(t, isMetric(name) && value != nil, name)
			}
		}
		for _, secret := range []string{":777777", ":1888888", ":1000000"} {
			require.NotContains(t, whole, secret)
		}
	})
}
