package server_test

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/server/web"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

func TestContract_openAPIDocumentAndItsExamplesAreValid(t *testing.T) {
	t.Parallel()
	require.NoError(t, sharedContract().doc.Validate(context.Background(), openapi3.EnableExamplesValidation()))
}

func TestContract_isServedUnchangedAsYAML(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	yaml := a.send(t, http.MethodGet, "/openapi.yaml", nil).requireStatus(http.StatusOK)
	require.Equal(t, reeltally.OpenAPI, string(yaml.body))
	asJSON := a.send(t, http.MethodGet, "/openapi.json", nil).requireStatus(http.StatusOK)
	require.Equal(t, "application/json", asJSON.Header.Get("Content-Type"))
	doc, err := openapi3.NewLoader().LoadFromData(asJSON.body)
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(doc.Info.Version, ".", "-"), asJSON.Header.Get("API-Version"))
	require.Len(t, doc.Paths.Map(), len(sharedContract().doc.Paths.Map()))
}

var camelCase = regexp.MustCompile(`^[a-z]+([A-Z][a-z0-9]+)*$`)

func TestContract_everyOperationHasDescriptionsExamplesAndLimits(t *testing.T) {
	t.Parallel()
	for _, op := range sharedContract().operations {
		t.Run(op.id, func(t *testing.T) {
			t.Parallel()
			require.Regexp(t, camelCase, op.id)
			require.Len(t, op.Operation.Tags, 1)
			require.NotEmpty(t, op.Operation.Description)
			require.LessOrEqual(t, len(op.Operation.Summary), 60)
			require.NotEmpty(t, op.Operation.Extensions["x-codeSamples"])
			for _, p := range op.Operation.Parameters {
				require.True(t, p.Value.Example != nil || len(p.Value.Examples) > 0, "%s has no example", p.Value.Name)
				requireBounds(t, p.Value.Name, p.Value.Schema.Value)
			}
			if b := op.Operation.RequestBody; b != nil {
				require.NotNil(t, b.Value.Content.Get("application/json").Schema.Value.Example)
			}
			for status, r := range op.Operation.Responses.Map() {
				for media, content := range r.Value.Content {
					require.Equal(t, media != xlsx, len(content.Examples) > 0, "%s: every format except a workbook must have an example", status)
					require.Equal(t, status[0] >= '4' && status+media != "422application/json", media == "application/problem+json")
				}
				require.Contains(t, r.Value.Headers, "X-Request-Id", status)
			}
		})
	}
	for name, s := range sharedContract().doc.Components.Schemas {
		requireBounds(t, name, s.Value)
	}
}

// requireBounds requires a maximum length for every string and array in the schema, and a minimum and a maximum for every number.
func requireBounds(t *testing.T, name string, s *openapi3.Schema) {
	t.Helper()
	switch {
	case s.Type.Is("string"):
		isTime := s.Format == "date-time" || s.Format == "date" // a valid date or time has a limited length, so maxLength is not needed
		require.True(t, s.MaxLength != nil || len(s.Enum) > 0 || isTime, "%s has no maxLength", name)
		require.True(t, s.Format != "" || s.Pattern != "" || len(s.Enum) > 0, "%s has no format, pattern or enum", name)
	case s.Type.Is("array"):
		require.NotNil(t, s.MaxItems, "%s has no maxItems", name)
		requireBounds(t, name+"[]", s.Items.Value)
	case s.Type.Is("integer"), s.Type.Is("number"):
		require.NotEmpty(t, s.Format, "%s has no format", name)
		require.NotNil(t, s.Min, "%s has no minimum", name)
		require.NotNil(t, s.Max, "%s has no maximum", name)
	}
	for p, child := range s.Properties {
		require.NotEmpty(t, child.Value.Description+child.Ref, "%s.%s has no description", name, p)
		requireBounds(t, name+"."+p, child.Value)
	}
}

// routesOutsideTheContract lists the routes of the router that openapi.yaml does not contain.
var routesOutsideTheContract = []string{"/livez", "/readyz", "/openapi.yaml", "/openapi.json", "/llms.txt", "/.well-known/security.txt", "/errors", "/docs", "/docs/*", "/mcp"}

func TestContract_hasTheSameRoutesAsTheRouter(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	router, ok := a.server.Handler().(*echo.Echo)
	require.True(t, ok)
	var routed, declared []string
	for _, r := range router.Routes() {
		if !slices.Contains(routesOutsideTheContract, r.Path) && !slices.Contains(web.Paths, r.Path) {
			routed = append(routed, r.Method+" "+r.Path)
		}
	}
	for _, op := range sharedContract().operations {
		path := regexp.MustCompile(`\{(\w+)\}`).ReplaceAllString(op.Path, ":$1")
		declared = append(declared, op.Method+" "+path)
		if op.Method == http.MethodGet {
			declared = append(declared, http.MethodHead+" "+path)
		}
	}
	require.ElementsMatch(t, declared, routed)
}

// exampleRequest returns the path and the body of a valid request of an operation. It uses the examples in openapi.yaml.
func exampleRequest(t *testing.T, op *contractOperation) (target string, body any) {
	t.Helper()
	target = op.Path
	for _, p := range op.Operation.Parameters {
		if p.Value.In != openapi3.ParameterInPath {
			continue
		}
		value := p.Value.Example
		if value == nil {
			value = p.Value.Examples["id"].Value.Value
		}
		text, ok := value.(string)
		require.True(t, ok)
		target = strings.ReplaceAll(target, "{"+p.Value.Name+"}", url.PathEscape(text))
	}
	if b := op.Operation.RequestBody; b != nil {
		body = b.Value.Content.Get("application/json").Schema.Value.Example
	}
	return target, body
}

// eachOperation runs a subtest on SQLite for every operation of the contract. It passes a new app, and the path and the body of a valid
// request, to runTest.
func eachOperation(t *testing.T, runTest func(t *testing.T, a *app, op *contractOperation, target string, body any)) {
	t.Helper()
	for _, op := range sharedContract().operations {
		t.Run(op.id, func(t *testing.T) {
			t.Parallel()
			target, body := exampleRequest(t, op)
			runTest(t, newApp(t, newSQLite(t)), op, target, body)
		})
	}
}

// eachRefusedOperation is like eachOperation, but all subtests share one app, which takes much less time. It is for requests that the server
// refuses before it changes any data.
func eachRefusedOperation(t *testing.T, runTest func(t *testing.T, a *app, op *contractOperation, target string, body any)) {
	t.Helper()
	a := newApp(t, newSQLite(t))
	for _, op := range sharedContract().operations {
		t.Run(op.id, func(t *testing.T) {
			t.Parallel()
			target, body := exampleRequest(t, op)
			runTest(t, a, op, target, body)
		})
	}
}

// Requirements in docs/coverage.md: 4-01, 5-01, 7-09
func TestEveryOperation_refusesAMissingOrWrongToken(t *testing.T) {
	t.Parallel()
	eachRefusedOperation(t, func(t *testing.T, a *app, op *contractOperation, target string, _ any) {
		// The query and the body are invalid too. The server must check the token first.
		p := a.send(t, op.Method, target+"?x=1;y", "{").requireProblem(http.StatusUnauthorized, server.CodeTokenMissing)
		require.Equal(t, "/errors#token_missing", p.Type)
		a.send(t, op.Method, target, nil, "Authorization", "Bearer rt_nonsense").requireProblem(http.StatusUnauthorized, server.CodeTokenMistyped)
	})
}

func TestEveryOperation_refusesATokenWithoutTheRequiredScope(t *testing.T) {
	t.Parallel()
	eachRefusedOperation(t, func(t *testing.T, a *app, op *contractOperation, target string, body any) {
		scope, _ := op.Operation.Extensions["x-scope"].(string)
		org := a.newCaller(t, store.TierPremium).org
		others := slices.DeleteFunc(slices.Clone(store.Scopes), func(s store.Scope) bool { return string(s) == scope })
		got := a.newToken(t, org, others...).send(op.Method, target, body)
		if scope == "any" {
			got.requireStatus(http.StatusOK)
			return
		}
		p := got.requireProblem(http.StatusForbidden, server.CodeScopeMissing)
		require.Contains(t, p.Detail, scope)
	})
}

func TestEveryOperation_refusesUnknownParameters(t *testing.T) {
	t.Parallel()
	eachRefusedOperation(t, func(t *testing.T, a *app, op *contractOperation, target string, body any) {
		p := a.newCaller(t, store.TierPremium).send(op.Method, target+"?colour=red", body).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Len(t, p.Errors, 1)
		require.Equal(t, "colour", *p.Errors[0].Name)
		require.Equal(t, "unknown_parameter", p.Errors[0].Code)
		for _, param := range op.Operation.Parameters {
			if param.Value.In == openapi3.ParameterInQuery {
				require.Contains(t, p.Detail, param.Value.Name)
			}
		}
	})
}

// Requirements in docs/coverage.md: 4.3-01, 4.4-01, 7-09
func TestEveryOperationWithABody_refusesInvalidAndLargeBodies(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(t *testing.T, a *app, op *contractOperation, target string, body any) {
		c := a.newCaller(t, store.TierPremium)
		if op.Operation.RequestBody == nil {
			got := c.send(op.Method, target, `{"not": "read"}`)
			require.NotContains(t, []int{400, 413, 415}, got.StatusCode, "the server must ignore the body if the operation does not declare a body")
			return
		}
		c.send(op.Method, target, strings.Repeat(" ", 2<<20)+"{}").requireProblem(http.StatusRequestEntityTooLarge, server.CodeBodyTooLarge)
		p := c.send(op.Method, target, body, "Content-Type", "text/plain").requireProblem(http.StatusUnsupportedMediaType, server.CodeUnsupportedMedia)
		require.Contains(t, p.Detail, "text/plain")
		c.send(op.Method, target, body, "Content-Type", "").requireProblem(http.StatusUnsupportedMediaType, server.CodeUnsupportedMedia)
		c.send(op.Method, target, body, "Content-Encoding", "gzip").requireProblem(http.StatusUnsupportedMediaType, server.CodeUnsupportedMedia)
		for name, broken := range map[string]string{
			"incomplete JSON":               `{"link": `,
			"text after the object":         `{} {}`,
			"an array instead of an object": `[]`,
			"an empty body":                 ``,
			"invalid UTF-8":                 "{\"a\": \"\xff\"}",
			"NUL in a string":               `{"a": "\u0000"}`,
			"an unpaired surrogate":         `{"a": "\ud800"}`,
			"a member that occurs twice":    `{"a": 1, "a": 1}`,
			"an unknown member":             `{"surprise": 1}`,
		} {
			if broken == "" && !op.Operation.RequestBody.Value.Required {
				continue
			}
			p := c.send(op.Method, target, broken).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			require.NotEmpty(t, p.Errors, name)
			require.Equal(t, "body", string(p.Errors[0].Location), name)
		}
	})
}

// Requirements in docs/coverage.md: 7-09
func TestEveryOperation_hidesTheCauseOfADatabaseFailure(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(t *testing.T, a *app, op *contractOperation, target string, body any) {
		c := a.newCaller(t, store.TierPremium)
		a.breakDatabase(errors.New(`SQLSTATE 42P01 at SELECT secret FROM vault`))
		p := c.send(op.Method, target, body).requireProblem(http.StatusInternalServerError, server.CodeInternal)
		require.Contains(t, a.log.String(), "vault", "the log must contain the cause of the failure")
		require.Contains(t, a.log.String(), p.RequestID)
		a.breakDatabase(driver.ErrBadConn)
		c.send(op.Method, target, body).requireProblem(http.StatusServiceUnavailable, server.CodeUnavailable)
	})
}

// TestEveryOperationThatMasksMetrics_returnsNullMetricsToLowerTiers calls each operation that has
// x-tier-masked in openapi.yaml. Metrics must be null for the tiers limited and basic, and not null
// for the tier premium.
//
// Requirements in docs/coverage.md: 4-02, 4.1-01, 4.1-15, 4.1-26, 4.1-34, 4.2-01, 4.2-21, 4.2-22, 4.2-28, 5-02, 8-12
func TestEveryOperationThatMasksMetrics_returnsNullMetricsToLowerTiers(t *testing.T) {
	t.Parallel()
	for _, op := range sharedContract().operations {
		if masked, _ := op.Operation.Extensions["x-tier-masked"].(bool); !masked || op.id == "listEvents" {
			continue // another test checks listEvents: TestWebhooks_maskMetricsForTiersThatDoNotShowThem
		}
		t.Run(op.id, func(t *testing.T) {
			t.Parallel()
			for _, tier := range store.Tiers {
				a := newApp(t, newSQLite(t))
				c := a.newCaller(t, tier)
				id := c.track(tiktokLink)
				c.track(videoURL(1))
				facts := func(queue.Target) ingest.VideoFacts {
					return ingest.VideoFacts{Views: new(int64(10)), Likes: new(int64(2)), Comments: new(int64(2)), Shares: new(int64(2)), Bookmarks: new(int64(2))}
				}
				a.fetch(facts)
				collections := []uuid.UUID{c.createCollection(map[string]any{"name": "One"}), c.createCollection(map[string]any{"name": "Two"})}
				c.addVideos(collections[0], id)
				account := c.trackAccountLink("https://www.tiktok.com/@northwind.studio")
				c.addAccounts(collections[0], account)
				a.fetchProfiles(func(queue.Target) ingest.AccountFacts {
					return ingest.AccountFacts{Followers: new(int64(5)), Following: new(int64(5))}
				})
				a.Clock.Advance(24 * time.Hour)
				a.fetch(facts)                   // the gain of a video that was fetched once would be unknown
				a.Clock.Advance(3 * time.Minute) // an export has only history points that are at least two minutes old
				// Set the growth in the database. The server cannot compute it, because each video has only two history points.
				a.Exec(t, "UPDATE videos SET increase_1d = 1, increase_7d = 1, increase_14d = 1, increase_30d = 1, views_gained_7d = 1")
				a.Exec(t, "UPDATE accounts SET views_gained_7d = 1")
				target := strings.NewReplacer("{ad_id}", id.String(), "{account_id}", account.String(), "{collection_id}", collections[0].String(),
					"{report_id}", c.createReport(collections[0]).String()).Replace(op.Path)
				if op.Operation.Parameters.GetByInAndName("query", "include_counts") != nil {
					target += "?include_counts=true"
				}
				if op.id == "getOrganisationHistory" {
					target += "?start_date=" + a.daysAgo(0) // the gain of the first day is unknown
				}
				got := c.send(op.Method, target, nil).requireStatus(http.StatusOK)
				var whole any
				require.NoError(t, json.Unmarshal(got.body, &whole))
				objects := objectsWithMetrics(whole)
				if op.id == "listCollections" && tier == store.TierPremium {
					require.Empty(t, objects, "the response must not contain metrics if the query has no include_counts")
					continue
				}
				require.NotEmpty(t, objects)
				if tier != store.TierPremium {
					require.Len(t, objects, 1)
				}
				for _, o := range objects {
					allAdded := o["videos_added"] != nil && o["videos_added"] == o["videos"] // on such a day of a collection, no gain is known
					for name, value := range o {
						if isMetric(name) && (name != "views_gained" || !allAdded) {
							require.Equal(t, tier == store.TierPremium, value != nil, "the metric %s is %v in the response for the tier %s; only the tier premium may see metrics", name, value, tier)
						}
					}
					require.Equal(t, tier != store.TierPremium, o["metrics_masked"] == true)
				}
			}
		})
	}
}

// isMetric returns true if the given name is the name of a metric in the JSON of responses, such as views.
func isMetric(name string) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.ContainsFunc([]string{"latest_", "increase_", "mean_", "median_", "most_", "percent_", "total_", "unknown_", "views_"}, begins) && name != "total_pages" ||
		slices.Contains([]string{"outlier_multiplier", "measured", "accounts", "videos", "uploads", "followers", "following", "views", "likes", "comments", "shares", "bookmarks", "engagements", "video_count", "account_count"}, name)
}

// objectsWithMetrics returns those JSON objects in v that have a metric or the member metrics_masked. The parameter v is decoded JSON.
func objectsWithMetrics(v any) []map[string]any {
	var out []map[string]any
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, objectsWithMetrics(e)...)
		}
	case map[string]any:
		for name, e := range v {
			if name == "filters" {
				continue // skip "filters": it contains query parameters of the request, and some of them have the same name as a metric
			}
			out = append(out, objectsWithMetrics(e)...)
			if _, list := e.([]any); isMetric(name) && !list || name == "metrics_masked" {
				out = append(out, v)
				break
			}
		}
	}
	return out
}

// Requirements in docs/coverage.md: 7-09
func TestErrorsPage_explainsEveryErrorCode(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	page := a.send(t, http.MethodGet, "/errors", nil).requireStatus(http.StatusOK)
	for _, code := range server.Codes() {
		require.Contains(t, string(page.body), `id="`+string(code.Code)+`"`)
		require.GreaterOrEqual(t, code.Status, 400)
	}
	for _, code := range server.FaultCodes() {
		require.Contains(t, string(page.body), `id="fault-`+code.Code+`"`)
	}
	require.Contains(t, string(page.body), "A collection or report with the access <code>protected</code> needs a password.")
	require.NotContains(t, string(page.body), "`")
}
