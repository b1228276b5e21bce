package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// successStatuses contains the success statuses of operations, copied by hand from the
// specification. An operation without an entry has only the success status 200.
var successStatuses = map[string][]string{
	"createCollection":      {"201"},
	"createReport":          {"201"},
	"createToken":           {"201"},
	"revokeToken":           {"204"},
	"createWebhook":         {"201"},
	"deleteWebhook":         {"204"},
	"testWebhook":           {"202"},
	"replayWebhookDelivery": {"202"},
	"updateCollection":      {"204"},
	"updateReport":          {"204"},
	"refreshVideo":          {"200", "202"},
	"refreshAccount":        {"200", "202"},
	"trackVideos":           {"200", "207"},
	"trackAccounts":         {"200", "207"},
	"stopVideos":            {"200", "207"},
	"stopAccounts":          {"200", "207"},
}

// Requirements in docs/coverage.md: 4-04
func TestContract_declaresTheSpecifiedSuccessStatuses(t *testing.T) {
	t.Parallel()
	for _, op := range sharedContract().operations {
		var got []string
		for status := range op.Operation.Responses.Map() {
			if strings.HasPrefix(status, "2") {
				got = append(got, status)
			}
		}
		want, ok := successStatuses[op.id]
		if !ok {
			want = []string{"200"}
		}
		require.ElementsMatch(t, want, got, op.id) // TestMain requires that every declared status occurs in a response in some test
	}
}

// TestContract_declaresEveryErrorStatus requires that every operation declares the common error
// statuses. A scope, a path parameter and a body require further statuses.
func TestContract_declaresEveryErrorStatus(t *testing.T) {
	t.Parallel()
	for _, op := range sharedContract().operations {
		want := []string{"400", "401", "403", "429", "500", "503"}
		if scope, _ := op.Operation.Extensions["x-scope"].(string); scope == "any" {
			// The operation requires no scope, so it does not need status 403.
			want = slices.DeleteFunc(want, func(s string) bool { return s == "403" })
		}
		if strings.Contains(op.Path, "{") {
			want = append(want, "404")
		}
		if op.Operation.RequestBody != nil {
			want = append(want, "413", "415")
		}
		declared := op.Operation.Responses.Map()
		for _, status := range want {
			require.Contains(t, declared, status, op.id)
		}
	}
}

func TestEveryPath_listsItsMethodsInTheAllowHeader(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for _, op := range sharedContract().operations {
		target, _ := exampleRequest(t, op)
		allowed := []string{http.MethodOptions}
		for method := range op.PathItem.Operations() {
			if allowed = append(allowed, method); method == http.MethodGet {
				allowed = append(allowed, http.MethodHead)
			}
		}
		got := c.send(http.MethodPut, target, nil)
		got.requireProblem(http.StatusMethodNotAllowed, server.CodeMethodNotAllowed)
		options := c.send(http.MethodOptions, target, nil).requireStatus(http.StatusNoContent)
		for _, h := range []http.Header{got.Header, options.Header} {
			require.ElementsMatch(t, allowed, strings.Split(h.Get("Allow"), ", "), target)
		}
	}
}

func TestEveryQueryParameter_refusesInvalidSyntax(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(t *testing.T, a *app, op *contractOperation, target string, body any) {
		c := a.newCaller(t, store.TierPremium)
		for _, p := range op.Operation.Parameters {
			if p.Value.In != "query" {
				continue
			}
			name := p.Value.Name
			for query, code := range map[string]string{
				name + "=%zz":                "syntax",
				name + "=a;b=2":              "syntax",
				name + "=a&" + name + "=b":   "repeated_parameter",
				name + "=":                   "empty",
				name + "=a%00":               "encoding",
				name + "=%ff":                "encoding",
				strings.ToUpper(name) + "=a": "unknown_parameter",
			} {
				if code == "repeated_parameter" && p.Value.Schema.Value.Type.Is("array") {
					continue // a parameter with an array may occur several times, with one value each time
				}
				problem := c.send(op.Method, target+"?"+query, body).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
				require.True(t, strings.EqualFold(name, *problem.Errors[0].Name), query)
				if code != "empty" { // the code for an empty value is "empty" or "min_length", depending on the schema
					require.Equal(t, code, problem.Errors[0].Code, query)
				}
			}
		}
	})
}
