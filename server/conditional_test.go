package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// examplePaths returns a request path for each GET operation. The keys are the path templates of the operations. A request with such a path
// gets status 200.
func (c *caller) examplePaths() map[string]string {
	c.t.Helper()
	video := c.track(tiktokLink).String()
	account := decode[client.Video](c.send(http.MethodGet, "/videos/"+video, nil).requireStatus(http.StatusOK)).LinkedAccountID
	require.NotNil(c.t, account)
	collection := c.createCollection(map[string]any{"name": "Launch"}).String()
	report := c.createReport(uuid.MustParse(collection)).String()
	hook := c.createWebhook("https://hooks.example.com/")
	c.testWebhook(hook.ID)
	return map[string]string{
		"/webhooks":                               "/webhooks",
		"/webhooks/{webhook_id}":                  "/webhooks/" + hook.ID.String(),
		"/webhooks/{webhook_id}/deliveries":       "/webhooks/" + hook.ID.String() + "/deliveries",
		"/events":                                 "/events",
		"/authenticate":                           "/authenticate",
		"/videos":                                 "/videos?order_by=created_at",
		"/history/export":                         "/history/export",
		"/videos/{ad_id}":                         "/videos/" + video,
		"/videos/{ad_id}/history":                 "/videos/" + video + "/history",
		"/collections":                            "/collections",
		"/collections/{collection_id}":            "/collections/" + collection,
		"/collections/{collection_id}/videos":     "/collections/" + collection + "/videos",
		"/collections/{collection_id}/accounts":   "/collections/" + collection + "/accounts",
		"/collections/{collection_id}/history":    "/collections/" + collection + "/history",
		"/collections/{collection_id}/statistics": "/collections/" + collection + "/statistics",
		"/collections/{collection_id}/reports":    "/collections/" + collection + "/reports",
		"/reports/{report_id}":                    "/reports/" + report,
		"/tokens":                                 "/tokens",
		"/accounts":                               "/accounts",
		"/accounts/{account_id}":                  "/accounts/" + account.String(),
		"/accounts/{account_id}/videos":           "/accounts/" + account.String() + "/videos",
		"/accounts/{account_id}/history":          "/accounts/" + account.String() + "/history",
		"/organisation/history":                   "/organisation/history",
		"/statistics/videos":                      "/statistics/videos",
		"/statistics/accounts":                    "/statistics/accounts",
	}
}

func TestConditionalRequest_everyGETResponseHasAnETag(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		otherToken := a.newToken(t, c.org, store.ScopeRead)
		paths := c.examplePaths()
		for _, user := range []*caller{c, otherToken} {
			user.send(http.MethodGet, "/authenticate", nil).requireStatus(http.StatusOK)
		}
		// Close waits until the server has stored the time of the last use of each token. If the server stored
		// it later, the ETag of GET /tokens would change during the test.
		a.server.Close()
		for path, item := range sharedContract().doc.Paths.Map() {
			if item.Get == nil {
				continue
			}
			target, ok := paths[path]
			require.True(t, ok, "add a request path for GET %s to examplePaths", path)
			first := c.send(http.MethodGet, target, nil).requireStatus(http.StatusOK)
			tag := first.Header.Get("ETag")
			require.Regexp(t, `^"[A-Za-z0-9_-]{24}"$`, tag, path)

			again := c.send(http.MethodGet, target, nil, "If-None-Match", `"another", W/`+tag).requireStatus(http.StatusNotModified)
			require.Empty(t, again.body, path)
			require.Equal(t, tag, again.Header.Get("ETag"), path)
			require.NotEmpty(t, again.Header.Get("RateLimit-Limit"), path)
			c.send(http.MethodGet, target, nil, "If-None-Match", strings.TrimSuffix(tag, `"`)+`-gzip"`).requireStatus(http.StatusNotModified)
			c.send(http.MethodGet, target, nil, "If-None-Match", `"another"`).requireStatus(http.StatusOK)
			head := c.send(http.MethodHead, target, nil).requireStatus(http.StatusOK)
			require.Equal(t, tag, head.Header.Get("ETag"), path)
			if path != "/authenticate" && item.Get.Extensions["x-scope"] != "admin" { // skip admin operations, which otherToken may not call, and GET /authenticate, whose response depends on the token
				require.Equal(t, tag, otherToken.send(http.MethodGet, target, nil).requireStatus(http.StatusOK).Header.Get("ETag"), "%s: two tokens of one organisation must get the same ETag", path)
			}
		}
	})
}

func TestConditionalRequest_etagDoesNotChangeIfAMaskedMetricChanges(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierBasic)
		video := "/videos/" + c.track(tiktokLink).String()
		views := int64(1000)
		deliver := func() {
			views++
			a.fetch(func(queue.Target) ingest.VideoFacts { return ingest.VideoFacts{Views: &views} })
		}
		deliver()
		before := c.send(http.MethodGet, video, nil).requireStatus(http.StatusOK).Header.Get("ETag")
		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierPremium))
		a.Clock.Advance(2e9)
		plain := c.send(http.MethodGet, video, nil).requireStatus(http.StatusOK).Header.Get("ETag")
		require.NotEqual(t, before, plain, "masked and unmasked responses must have different ETags")
		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
		a.Clock.Advance(48 * 3600 * 1e9)
		deliver()
		require.Equal(t, before, c.send(http.MethodGet, video, nil).requireStatus(http.StatusOK).Header.Get("ETag"), "the ETag of a response must not change if only a masked metric changed")
	})
}

func TestConditionalRequest_etagDependsOnEveryParameterButNotOnTheirOrder(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		etag := func(target string) string {
			t.Helper()
			return c.send(http.MethodGet, target, nil).requireStatus(http.StatusOK).Header.Get("ETag")
		}
		// value returns a valid value of a query parameter, which is not the default.
		value := func(p *openapi3.Parameter) string {
			schema, day := p.Schema.Value, a.daysAgo(2)
			if strings.HasSuffix(p.Name, "_end") || p.Name == "end_date" {
				day = a.daysAgo(1)
			}
			switch {
			case schema.Type.Is("boolean"):
				return strconv.FormatBool(schema.Default != true)
			case schema.Type.Is("integer"):
				return "2"
			case schema.Type.Is("array"):
				return fmt.Sprint(p.Example.([]any)[0])
			case schema.Format == "date":
				return day
			case schema.Format == "date-time":
				return day + "T00:00:00Z"
			}
			return fmt.Sprint(p.Example)
		}
		for path, target := range c.examplePaths() {
			target, _, _ = strings.Cut(target, "?")
			all := []string{}
			for _, parameter := range sharedContract().doc.Paths.Value(path).Get.Parameters {
				p := parameter.Value
				if p.In != openapi3.ParameterInQuery || p.Name == "cursor" {
					continue // see the end of this test
				}
				pair := p.Name + "=" + url.QueryEscape(value(p))
				if all = append(all, pair); p.Name == "page" && slices.Contains(all, "paginated=true") {
					require.NotEqual(t, etag(target+"?paginated=true"), etag(target+"?paginated=true&"+pair), target)
					continue
				}
				require.NotEqual(t, etag(target), etag(target+"?"+pair), pair)
			}
			ordered := etag(target + "?" + strings.Join(all, "&"))
			slices.Reverse(all)
			require.Equal(t, ordered, etag(target+"?"+strings.Join(all, "&")), target)
		}
		cursor := decode[client.EventFeed](c.send(http.MethodGet, "/events", nil).requireStatus(http.StatusOK)).NextCursor
		require.NotEqual(t, etag("/events"), etag("/events?cursor="+cursor))
		first, second := c.createCollection(map[string]any{"name": "A"}), c.createCollection(map[string]any{"name": "B"})
		for _, list := range []string{"videos", "accounts", "reports", "history", "statistics"} {
			require.NotEqual(t, etag("/collections/"+first.String()+"/"+list), etag("/collections/"+second.String()+"/"+list))
		}
	})
}

func TestConditionalRequest_etagDependsOnTheTargetOfAShortLink(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		for list, target := range map[string]string{"videos": tiktokLink, "accounts": accountLink} {
			short := "https://vm.tiktok.com/ZM" + list + "01/"
			path := "/" + list + "?link=" + url.QueryEscape(short)
			tag := c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK).Header.Get("ETag")
			c.send(http.MethodGet, path, nil, "If-None-Match", tag).requireStatus(http.StatusNotModified)
			a.platforms.redirect(short, target) // before this call, the short link is dead
			c.send(http.MethodGet, path, nil, "If-None-Match", tag).requireStatus(http.StatusOK)
		}
	})
}
