package server_test

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// initialize is the first message of an MCP session.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// postMCP sends an MCP message to the endpoint /mcp. If headers does not contain Authorization, the request has no token.
func (a *app) postMCP(t *testing.T, body string, headers ...string) response {
	t.Helper()
	return a.send(t, http.MethodPost, "/mcp", body, append([]string{"Accept", "application/json, text/event-stream"}, headers...)...)
}

func TestMCP_limitsRequestsPerAddressIfTheyHaveNoToken(t *testing.T) {
	t.Parallel()
	a := newRateLimitedApp(t)
	p := a.postMCP(t, initialize).requireProblem(http.StatusUnauthorized, server.CodeTokenMissing)
	require.NotEmpty(t, p.RequestID)
	got := a.postMCP(t, initialize, "Authorization", "Bearer rt_nonsense").requireStatus(http.StatusUnauthorized)
	require.Contains(t, got.Header.Get("WWW-Authenticate"), `Bearer realm="ReelTally", error="invalid_token"`)
	for range 58 {
		a.postMCP(t, initialize).requireStatus(http.StatusUnauthorized)
	}
	a.postMCP(t, initialize).requireProblem(http.StatusTooManyRequests, server.CodeRateLimited)
	require.Len(t, a.newCaller(t, store.TierLimited).openAssistant().tools(), len(toolOperations()))
}

func TestMCP_acceptsOnlyPOST(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodPut} {
		got := c.send(method, "/mcp", nil, "Accept", "text/event-stream").requireStatus(http.StatusMethodNotAllowed)
		require.Contains(t, got.Header.Get("Allow"), "POST")
	}
	preflight := a.send(t, http.MethodOptions, "/mcp", nil, "Origin", "https://assistant.example").requireStatus(http.StatusNoContent)
	require.Equal(t, "POST", preflight.Header.Get("Access-Control-Allow-Methods"))
	require.Contains(t, preflight.Header.Get("Access-Control-Allow-Headers"), "Mcp-Protocol-Version")
}

func TestMCP_refusesInvalidMessagesAndExplainsTheReason(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	token := "Bearer " + a.newCaller(t, store.TierPremium).token
	post := func(t *testing.T, body string, headers ...string) response {
		t.Helper()
		return a.postMCP(t, body, append([]string{"Authorization", token}, headers...)...)
	}
	got := post(t, initialize).requireStatus(http.StatusOK)
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	require.Empty(t, got.Header.Get("Mcp-Session-Id"), "the response must have no session id")
	post(t, "{").requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	post(t, "").requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	post(t, strings.Repeat(" ", 2<<20)+initialize).requireProblem(http.StatusRequestEntityTooLarge, server.CodeBodyTooLarge)
	post(t, initialize, "Content-Type", "text/plain").requireProblem(http.StatusUnsupportedMediaType, server.CodeUnsupportedMedia)
	for _, accept := range []string{"text/html", "application/json"} {
		p := post(t, initialize, "Accept", accept).requireProblem(http.StatusNotAcceptable, server.CodeNotAcceptable)
		require.Equal(t, "Accept is \""+accept+"\", but a client of the Model Context Protocol must accept application/json and text/event-stream.", p.Detail)
	}
	p := post(t, initialize, "Mcp-Protocol-Version", "1999-01-01").requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	require.Contains(t, p.Detail, "2025-06-18")
}

func TestMCP_refusesAMessageThatIsNotStrictJSON(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	create := func(name string) string { return toolCall("create_collection", `{"name":"`+name+`"}`) }
	for name, test := range map[string]struct{ message, pointer, code, detail string }{
		"two messages":                         {create("first") + " " + create("second"), "", "trailing_text", "text after the JSON value"},
		"text after the message":               {`{"jsonrpc":"2.0","id":2,"method":"ping"} x`, "", "trailing_text", "text after the JSON value"},
		"two members named params":             {strings.TrimSuffix(create("first"), "}") + `,"params":{"name":"authenticate"}}`, "/params", "duplicate_member", `"params"`},
		"two members named arguments":          {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"authenticate","arguments":{},"arguments":{}}}`, "/params/arguments", "duplicate_member", `"arguments"`},
		"a duplicate member in _meta":          {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"a":{"b":1,"b":2}}}}`, "/params/_meta/a/b", "duplicate_member", `"b"`},
		"a duplicate argument of a prompt":     {`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"weekly_report","arguments":{"end_date":"2026-02-22","end_date":"2026-02-23"}}}`, "/params/arguments/end_date", "duplicate_member", `"end_date"`},
		"an argument that is not JSON":         {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_collection","arguments":{"name":first}}}`, "/params/arguments/name", "syntax", "not JSON"},
		"half of a surrogate pair in the id":   {`{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`, "/id", "encoding", "surrogate"},
		"a duplicate member in a notification": {`{"jsonrpc":"2.0","method":"notifications/initialized","method":"notifications/initialized"}`, "/method", "duplicate_member", `"method"`},
	} {
		p := a.postMCP(t, test.message, "Authorization", "Bearer "+c.token).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Len(t, p.Errors, 1, name)
		require.Equal(t, test.pointer, *p.Errors[0].Pointer, name)
		require.Equal(t, test.code, p.Errors[0].Code, name)
		require.Contains(t, p.Errors[0].Detail, test.detail, name)
	}
	require.NotContains(t, string(c.send(http.MethodGet, "/collections", nil).requireStatus(http.StatusOK).body), "first", "the server must not run a refused message")
}

func TestMCP_answersWithTheIDOfTheRequestOrRefusesTheID(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	token := "Bearer " + a.newCaller(t, store.TierPremium).token
	for _, request := range []string{`"method":"ping"`, `"method":"tools/call","params":{"name":"authenticate"}`} {
		for _, id := range []string{"0", "-7", "9007199254740991", "-9007199254740991", `"a<b"`, `""`, `"1.5"`} {
			got := a.postMCP(t, `{"jsonrpc":"2.0","id":`+id+`,`+request+`}`, "Authorization", token).requireStatus(http.StatusOK)
			var answer struct{ ID json.RawMessage }
			require.NoError(t, json.Unmarshal(got.body, &answer))
			require.JSONEq(t, id, string(answer.ID))
		}
		for _, id := range []string{"1.5", "3.7", "1.0", "1e3", "9007199254740992", "9007199254740993", "-9007199254740992", "1e400", "null", "true", "[1]", "{}"} {
			p := a.postMCP(t, `{"jsonrpc":"2.0","id":`+id+`,`+request+`}`, "Authorization", token).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			require.Contains(t, p.Detail, "the id must be a string or an integer from -9007199254740991 to 9007199254740991, without fraction or exponent", id)
			require.Contains(t, p.Detail, id)
		}
	}
}

func TestMCP_answersARefusedCallWithAJSONRPCErrorAndItsID(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	token := "Bearer " + a.newCaller(t, store.TierPremium).token
	for _, version := range []string{"", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		for body, want := range map[string]string{
			`{"jsonrpc":"2.0","id":1,"method":"nope"}`:                      `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: \"nope\""}}`,
			`{"jsonrpc":"2.0","id":"a","method":"nope","params":{"x":1}}`:   `{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"method not found: \"nope\""}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`:                `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request: missing required \"params\""}}`,
			`{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}`: `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request: unexpected id for \"notifications/initialized\""}}`,
		} {
			got := a.postMCP(t, body, "Authorization", token, "Mcp-Protocol-Version", version).requireStatus(http.StatusOK)
			require.Equal(t, "application/json", got.Header.Get("Content-Type"))
			require.Equal(t, "no-store", got.Header.Get("Cache-Control"))
			require.JSONEq(t, want, string(got.body), "%s: %s", version, body)
		}
	}
	p := a.postMCP(t, `{"jsonrpc":"2.0","method":"nope"}`, "Authorization", token).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	require.Contains(t, p.Detail, "nope", "a notification has no id, so the response is not a JSON-RPC error")
}

func TestMCP_namesParamsOfAWrongTypeWithoutInternals(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	token := "Bearer " + a.newCaller(t, store.TierPremium).token
	for call, want := range map[string]string{
		`"method":"tools/call","params":{"name":5}`:                                           "params.name has a value of the type number where the type string is required",
		`"method":"tools/call","params":5`:                                                    "params has a value of the type number where the type object is required",
		`"method":"tools/call","params":{"name":"get_video","_meta":"x"}`:                     "params._meta has a value of the type string where the type object is required",
		`"method":"tools/call","params":{"name":"get_video","inputResponses":{"a":{}}}`:       "the params do not have the form that tools/call requires",
		`"method":"prompts/get","params":{"name":"weekly_report","arguments":{"end_date":5}}`: "params.arguments has a value of the type number where the type string is required",
		`"method":"tools/list","params":{"cursor":[]}`:                                        "params.cursor has a value of the type array where the type string is required",
		`"method":"initialize","params":{"clientInfo":{"name":{}}}`:                           "params.clientInfo.name has a value of the type object where the type string is required",
		`"method":"initialize","params":{"capabilities":{"roots":{"listChanged":1}}}`:         "params.capabilities.roots.listChanged has a value of the type number where the type boolean is required",
		`"method":"logging/setLevel","params":{"level":5}`:                                    "params.level has a value of the type number where the type string is required",
		`"method":"completion/complete","params":{"argument":[],"ref":{"type":"ref/prompt"}}`: "params.argument has a value of the type array where the type object is required",
	} {
		got := a.postMCP(t, `{"jsonrpc":"2.0","id":1,`+call+`}`, "Authorization", token).requireStatus(http.StatusOK)
		require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`+want+`"}}`, string(got.body), call)
	}
	for _, method := range []string{"initialize", "ping", "server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get", "completion/complete",
		"logging/setLevel", "resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen"} {
		for _, params := range []string{"[]", `"x"`, `{"_meta":5}`, `{"name":5,"uri":5,"level":5,"cursor":5,"ref":5,"capabilities":5,"notifications":5}`} {
			// The client of the tests fails if the response contains internals.
			a.postMCP(t, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, "Authorization", token)
		}
	}
}

func TestMCP_endsAStreamOfNotificationsImmediately(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	token := "Bearer " + a.newCaller(t, store.TierPremium).token
	got := a.postMCP(t, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true}}}`,
		"Authorization", token, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	require.Contains(t, string(got.requireStatus(http.StatusOK).body), "acknowledged", "the stream must end immediately, because the list of tools never changes")
}

func TestMCP_refusesDNSRebinding(t *testing.T) {
	t.Parallel()
	for name, trusted := range map[string]bool{"status 403 for an unknown host name": false, "status 200 behind a trusted proxy": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, newSQLite(t), func(o *server.Options) {
				if trusted {
					o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
				}
			})
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.http.URL+"/mcp", strings.NewReader(initialize))
			require.NoError(t, err)
			r.Host = "rebound.example"
			for header, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
				"Authorization": "Bearer " + a.newCaller(t, store.TierPremium).token} {
				r.Header.Set(header, value)
			}
			resp, err := a.newContractCheckingClient().Do(r)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, map[bool]int{false: http.StatusForbidden, true: http.StatusOK}[trusted], resp.StatusCode)
		})
	}
}

func TestMCP_sandboxSaysThatDataIsMadeUp(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.Sandbox = true })
	session := a.newCaller(t, store.TierPremium).openAssistant()
	require.Contains(t, session.InitializeResult().Instructions, "made up")
	require.Contains(t, textBlocks(t, session.callTool("get_video_statistics", nil))[0], "made up")
}

func TestMCP_eachSessionReadsWhetherDataIsMadeUp(t *testing.T) {
	t.Parallel()
	for kind, sandbox := range map[store.DataKind]bool{store.MadeUpData: true, store.RealData: false} {
		for _, atStart := range []bool{true, false} {
			a := newApp(t, newSQLite(t), func(o *server.Options) { o.Sandbox = atStart })
			c := a.newCaller(t, store.TierPremium)
			require.Equal(t, atStart, strings.Contains(c.openAssistant().InitializeResult().Instructions, "made up"), "the database has no data")
			storetest.SetDataKind(t, a.DB, kind)
			require.Equal(t, sandbox, strings.Contains(c.openAssistant().InitializeResult().Instructions, "made up"), kind)
		}
	}
}

func TestMCP_getCollectionReturnsAnETagForUpdateCollection(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	id := c.createCollection(map[string]any{"name": "Launch"})
	session := c.openAssistant()
	text := strings.Join(textBlocks(t, session.callTool("get_collection", map[string]any{"collection_id": id})), "\n")
	tag := regexp.MustCompile(`To change this version, send if_match: (".+")`).FindStringSubmatch(text)
	require.NotNil(t, tag, text)
	change := map[string]any{"collection_id": id, "name": "Autumn", "if_match": tag[1]}
	require.False(t, session.callTool("update_collection", change).IsError)
	session.requireRefused(session.callTool("update_collection", change), http.StatusPreconditionFailed, server.CodePreconditionFailed)
}

func TestMCP_logsTheRESTRouteOfEachToolCall(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	a.postMCP(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_video_statistics"}}`,
		"Authorization", "Bearer "+c.token, "X-Request-Id", "request-id-of-the-tool-call").requireStatus(http.StatusOK)
	for _, route := range []string{"/mcp", "/statistics/videos"} {
		require.Regexp(t, `"request_id":"request-id-of-the-tool-call","method":"\w+","route":"`+route+`","status":200`, a.log.String())
	}
	require.NotContains(t, a.log.String(), c.token)
}
