package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// requestSpec describes one HTTP request that a customer sends to the server.
type requestSpec struct {
	method, path, body string
	keyed              bool // whether the request has an Idempotency-Key header
	// onSuccess is called with the body of a successful response. It is nil if the body is not needed.
	onSuccess func(body []byte)
}

// customer is a test organisation that uses its full rate limits. It has the ids that its requests need, such as the ids of its videos and
// collections.
type customer struct {
	*stack
	videos, accounts []string // ids that existed before the run
	collections      []string // ids of collections that are never deleted
	large            string   // body of a bulk request with 500 invalid links, about 2 MiB

	mu   sync.Mutex
	made map[string][]string // ids or links of the objects that the run has created and not yet deleted; the key is the kind, such as "tokens"
}

// newCustomer creates an organisation with made-up videos and five collections, and a token for it.
func newCustomer(t *testing.T, s *stack, videos int) *customer {
	t.Helper()
	id := s.seedOrganisations(t, "--videos", fmt.Sprint(videos), "--days", "30")[0]
	var token struct{ Token string }
	decodeJSON(t, []byte(runOperator(t, s.env, "token", "create", "--org", id.String(), "--name", "Customer", "--scopes", "read,write,admin", "--json")), &token)
	c := &customer{stack: &stack{sandboxProcess: s.sandboxProcess, env: s.env, base: s.base, token: token.Token}, made: map[string][]string{},
		large: bulkBody(jsonStrings(500, func(i int) string { return "https://example.com/" + randomText(uint64(i), 4150) }))}
	for _, v := range c.listVideos(t) {
		c.videos = append(c.videos, v.ID)
	}
	var accounts []struct {
		ID string `json:"account_id"`
	}
	c.stack.requireSuccessfulGet(t, "/accounts?limit=5000").decode(t, &accounts)
	for _, a := range accounts {
		c.accounts = append(c.accounts, a.ID)
	}
	for i := range 5 {
		id, err := c.createCollection(t, fmt.Sprintf("Kept %d", i), "")
		require.NoError(t, err)
		c.collections = append(c.collections, id)
	}
	return c
}

// addCreatedObjects stores links or ids of objects that the run created, so that takeCreatedObjects can return them later. objectKind is the kind of the
// objects, such as "tokens".
func (c *customer) addCreatedObjects(objectKind string, values ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[objectKind] = append(c.made[objectKind], values...)
}

// takeCreatedObjects removes and returns up to n values that addCreatedObjects has stored for the given kind.
// If no value is stored, it returns only the parameter fallback.
func (c *customer) takeCreatedObjects(kind string, n int, fallback string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := c.made[kind]
	n = min(n, len(have))
	if n == 0 {
		return []string{fallback}
	}
	out := slices.Clone(have[len(have)-n:])
	c.made[kind] = have[:len(have)-n]
	return out
}

func randomElement(values []string) string { return values[rand.IntN(len(values))] }

// randomElements returns n different random elements of values, or all elements if values has fewer than n.
func randomElements(values []string, n int) []string {
	out := slices.Clone(values)
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(n, len(out))]
}

func jsonList(values []string) string {
	return jsonStrings(len(values), func(i int) string { return values[i] })
}

// newAccountLink returns the link of an account that no test has tracked. It ignores its argument, the index of the link in a list.
func newAccountLink(int) string {
	id := strings.ReplaceAll(uuid.NewString(), "-", "")
	return "https://www.tiktok.com/@full" + id[len(id)-16:]
}

// requestSpecs maps the id of each operation to a function. The function describes the n-th request of the
// operation. Each request is as large as the operation allows.
func (c *customer) requestSpecs(t *testing.T) map[string]func(n int) requestSpec {
	get := func(path func() string) func(int) requestSpec {
		return func(int) requestSpec { return requestSpec{method: http.MethodGet, path: path()} }
	}
	fixed := func(path string) func(int) requestSpec { return get(func() string { return path }) }
	period := "start_date=" + time.Now().UTC().AddDate(0, 0, -729).Format(time.DateOnly) + "&include=quality"
	collection := func() string { return "/collections/" + randomElement(c.collections) }
	// trackAll returns a function that builds two kinds of bulk request in turn: one with 500 new links, and one with 500 long, invalid
	// links.
	trackAll := func(path, kind string, link func(int) string) func(n int) requestSpec {
		return func(n int) requestSpec {
			if n%2 == 1 {
				return requestSpec{method: http.MethodPost, path: path, body: c.large, keyed: true}
			}
			links := make([]string, 500)
			for i := range links {
				links[i] = link(i)
			}
			return requestSpec{method: http.MethodPost, path: path, keyed: true, onSuccess: func([]byte) { c.addCreatedObjects(kind, links...) },
				body: `{"label_ids":[` + fmt.Sprintf("%q", c.collections[0]) + `],"links":` + jsonList(links) + `}`}
		}
	}
	stopAll := func(path, kind string) func(n int) requestSpec {
		return func(int) requestSpec {
			return requestSpec{method: http.MethodDelete, path: path, body: `{"ids":` + jsonList(c.takeCreatedObjects(kind, 500, uuid.NewString())) + `}`}
		}
	}
	track := func(path, kind, id string, link func(int) string) func(int) requestSpec {
		return func(int) requestSpec {
			url := link(0)
			return requestSpec{method: http.MethodPost, path: path, keyed: true,
				body: fmt.Sprintf(`{"link":%q,"collection_ids":%s}`, url, jsonList(c.collections)),
				onSuccess: func(body []byte) {
					var made map[string]any
					decodeJSON(t, body, &made)
					if rand.IntN(2) == 0 {
						c.addCreatedObjects(kind+" links", url)
					} else {
						c.addCreatedObjects(kind+" ids", fmt.Sprint(made[id]))
					}
				}}
		}
	}
	stop := func(path, kind string) func(int) requestSpec {
		return func(int) requestSpec {
			return requestSpec{method: http.MethodDelete, path: path, body: fmt.Sprintf(`{"id":%q}`, c.takeCreatedObjects(kind+" links", 1, uuid.NewString())[0])}
		}
	}
	stopByID := func(path, kind string) func(int) requestSpec {
		return func(int) requestSpec {
			return requestSpec{method: http.MethodDelete, path: path + c.takeCreatedObjects(kind+" ids", 1, uuid.NewString())[0]}
		}
	}
	members := func(method, path, member string, ids []string) func(int) requestSpec {
		return func(int) requestSpec {
			return requestSpec{method: method, path: collection() + path, body: fmt.Sprintf(`{%q:%s}`, member, jsonList(randomElements(ids, 100))), keyed: method == http.MethodPost}
		}
	}
	refresh := func(path string, ids []string) func(int) requestSpec {
		return func(int) requestSpec {
			return requestSpec{method: http.MethodPost, path: path, body: fmt.Sprintf(`{"link":%q}`, randomElement(ids)), keyed: true}
		}
	}
	tags := func() string {
		return jsonStrings(100, func(i int) string { return fmt.Sprintf("tag%03d%s", i, strings.Repeat("x", 90)) })
	}
	// webhook returns the path of a webhook that the run created. If there is none yet, the path has an unknown id.
	webhook := func() string {
		unknown := uuid.NewString()
		id := c.takeCreatedObjects("webhooks", 1, unknown)[0]
		if id != unknown {
			c.addCreatedObjects("webhooks", id)
		}
		return "/webhooks/" + id
	}
	return map[string]func(n int) requestSpec{
		"authenticate":            fixed("/authenticate"),
		"listVideos":              fixed("/videos?limit=5000"),
		"getVideo":                get(func() string { return "/videos/" + randomElement(c.videos) }),
		"getVideoHistory":         get(func() string { return "/videos/" + randomElement(c.videos) + "/history?" + period }),
		"listAccounts":            fixed("/accounts?limit=5000&include_linked=true"),
		"getAccount":              get(func() string { return "/accounts/" + randomElement(c.accounts) }),
		"listAccountVideos":       get(func() string { return "/accounts/" + randomElement(c.accounts) + "/videos?limit=5000" }),
		"getAccountHistory":       get(func() string { return "/accounts/" + randomElement(c.accounts) + "/history?" + period }),
		"exportHistory":           fixed("/history/export?limit=50"),
		"getOrganisationHistory":  fixed("/organisation/history?" + strings.TrimSuffix(period, "&include=quality")),
		"getVideoStatistics":      fixed("/statistics/videos"),
		"getAccountStatistics":    fixed("/statistics/accounts"),
		"listCollections":         fixed("/collections?order_by=video_count"),
		"getCollection":           get(func() string { return collection() + "?include_counts=true" }),
		"listCollectionVideos":    get(func() string { return collection() + "/videos?limit=5000" }),
		"listCollectionAccounts":  get(func() string { return collection() + "/accounts?limit=5000" }),
		"getCollectionHistory":    get(func() string { return collection() + "/history?include_children=true" }),
		"getCollectionStatistics": get(func() string { return collection() + "/statistics?include_children=true" }),
		"listReports":             get(func() string { return collection() + "/reports?limit=5000" }),
		"updateReport": func(int) requestSpec {
			return requestSpec{method: http.MethodPatch, path: "/reports/" + uuid.NewString(), body: `{"access":"public"}`}
		},
		"getReport":  get(func() string { return "/reports/" + c.takeCreatedObjects("reports", 1, uuid.NewString())[0] }),
		"listTokens": fixed("/tokens"),
		"createToken": func(int) requestSpec {
			return requestSpec{method: http.MethodPost, path: "/tokens", body: fmt.Sprintf(`{"name":%q,"scopes":["read","write","admin"]}`, strings.Repeat("n", 100)), keyed: true,
				onSuccess: func(body []byte) {
					var made struct{ ID string }
					decodeJSON(t, body, &made)
					c.addCreatedObjects("tokens", made.ID)
				}}
		},
		"revokeToken": func(int) requestSpec {
			return requestSpec{method: http.MethodDelete, path: "/tokens/" + c.takeCreatedObjects("tokens", 1, uuid.NewString())[0]}
		},
		"listWebhooks": fixed("/webhooks"),
		"createWebhook": func(int) requestSpec {
			return requestSpec{method: http.MethodPost, path: "/webhooks", body: `{"url":"https://hooks.example.com/reeltally"}`, keyed: true,
				onSuccess: func(body []byte) {
					var made struct{ ID string }
					decodeJSON(t, body, &made)
					c.addCreatedObjects("webhooks", made.ID)
				}}
		},
		"getWebhook": get(webhook),
		"updateWebhook": func(int) requestSpec {
			return requestSpec{method: http.MethodPatch, path: webhook(), body: `{"description":"x"}`}
		},
		"deleteWebhook": func(int) requestSpec {
			return requestSpec{method: http.MethodDelete, path: "/webhooks/" + c.takeCreatedObjects("webhooks", 1, uuid.NewString())[0]}
		},
		"testWebhook":           func(int) requestSpec { return requestSpec{method: http.MethodPost, path: webhook() + "/test"} },
		"rotateWebhookSecret":   func(int) requestSpec { return requestSpec{method: http.MethodPost, path: webhook() + "/rotate-secret"} },
		"listWebhookDeliveries": get(func() string { return webhook() + "/deliveries?limit=5000" }),
		"replayWebhookDelivery": func(int) requestSpec {
			return requestSpec{method: http.MethodPost, path: webhook() + "/deliveries/" + uuid.NewString() + "/replay"}
		},
		"listEvents": fixed("/events?limit=1000"),
		"createReport": func(int) requestSpec {
			return requestSpec{method: http.MethodPost, path: collection() + "/reports", body: `{"include_children":true}`, keyed: true,
				onSuccess: func(body []byte) {
					var made struct{ ID string }
					decodeJSON(t, body, &made)
					c.addCreatedObjects("reports", made.ID)
				}}
		},
		"trackVideo":               track("/videos", "video", "videoId", newVideoLink),
		"trackAccount":             track("/accounts", "account", "accountId", newAccountLink),
		"stopVideo":                stop("/videos", "video"),
		"stopAccount":              stop("/accounts", "account"),
		"stopVideoById":            stopByID("/videos/", "video"),
		"stopAccountById":          stopByID("/accounts/", "account"),
		"trackVideos":              trackAll("/videos/bulk", "videos", newVideoLink),
		"trackAccounts":            trackAll("/accounts/bulk", "accounts", newAccountLink),
		"stopVideos":               stopAll("/videos/bulk", "videos"),
		"stopAccounts":             stopAll("/accounts/bulk", "accounts"),
		"addCollectionVideos":      members(http.MethodPost, "/videos", "video_ids", c.videos),
		"removeCollectionVideos":   members(http.MethodDelete, "/videos", "video_ids", c.videos),
		"addCollectionAccounts":    members(http.MethodPost, "/accounts", "account_ids", c.accounts),
		"removeCollectionAccounts": members(http.MethodDelete, "/accounts", "account_ids", c.accounts),
		"refreshVideo":             refresh("/refresh/videos", c.videos),
		"refreshAccount":           refresh("/refresh/accounts", c.accounts),
		"createCollection": func(int) requestSpec {
			return requestSpec{method: http.MethodPost, path: "/collections", body: fmt.Sprintf(`{"name":%q,"hashtags":%s}`, strings.Repeat("n", 100), tags()),
				onSuccess: func(body []byte) {
					var made struct{ ID string }
					decodeJSON(t, body, &made)
					c.addCreatedObjects("collections", made.ID)
				}}
		},
		"updateCollection": func(int) requestSpec {
			return requestSpec{method: http.MethodPatch, path: collection(), body: fmt.Sprintf(`{"access":"protected","password":%q,"display_settings":{"x":%q}}`,
				uuid.NewString(), strings.Repeat("x", 16_000))}
		},
		"deleteCollection": func(int) requestSpec {
			return requestSpec{method: http.MethodDelete, path: "/collections/" + c.takeCreatedObjects("collections", 1, uuid.NewString())[0]}
		},
	}
}

// rateLimits returns how often each operation may be called in a minute, as GET /authenticate reports.
func (c *customer) rateLimits(t *testing.T) map[string]int {
	t.Helper()
	var identity struct {
		Limits []struct {
			Limit      int
			Window     int `json:"window_seconds"`
			Operations []string
		} `json:"rate_limits"`
	}
	c.stack.requireSuccessfulGet(t, "/authenticate").decode(t, &identity)
	limits := map[string]int{}
	for _, group := range identity.Limits {
		require.Equal(t, 60, group.Window)
		for _, operation := range group.Operations {
			limits[operation] = group.Limit
		}
	}
	return limits
}
