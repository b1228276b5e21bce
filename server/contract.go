package server

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/server/mcp"
	"github.com/reeltally/reeltally/store"
)

// operation is an operation of the OpenAPI contract. It contains the values of the operation's x- members, such as x-scope.
type operation struct {
	id       string
	method   string
	template string // path in the syntax of the web framework echo, for example /videos/:ad_id
	group    rateGroup
	scope    store.Scope // scope that the token must have; "" if every valid token is allowed
	masked   bool        // true if the response contains metrics that some tiers must not see
	hasBody  bool
	// secretMember is the name of the response's member that contains a secret, or "" if the response
	// contains no secret.
	secretMember string
	query        map[string]*openapi3.Parameter // query parameters of the operation, by name
	defaultLimit int                            // page size if a request has no query parameter "limit"; 0 if the operation has no such parameter
	path         []string                       // names of the operation's path parameters
	headers      []string                       // names of the operation's header parameters
	formats      []string                       // media types of successful responses, with JSON first
	row          *openapi3.Schema               // schema of an entry of the list in the response; nil if the response is not a list
	route        *routers.Route                 // description of the operation for the library that validates requests
}

// bodySchema returns the schema of the operation's request body, or nil if the operation has no request body.
func (o *operation) bodySchema() *openapi3.Schema {
	if !o.hasBody {
		return nil
	}
	return o.route.Operation.RequestBody.Value.Content.Get("application/json").Schema.Value
}

// contract contains the parts of the OpenAPI contract that the server needs. The web framework echo finds the route of a request, and byRoute
// contains the route's operation.
type contract struct {
	version string                 // date of the OpenAPI contract, such as "2026-11-23"
	etag    string                 // ETag of the OpenAPI document, which changes with every change of the contract
	json    []byte                 // OpenAPI document as JSON, which GET /openapi.json returns
	tools   mcp.Tools              // MCP tools, which mcp.ToolsFromOpenAPI derives from the operations
	byRoute map[string]*operation  // operations by route, such as "GET /videos/:ad_id"
	methods map[string][]string    // sorted HTTP methods of each path of the contract; a key is a path such as /videos/:ad_id
	groups  map[rateGroup][]string // sorted ids of the operations of each rate group
}

// embeddedContract returns the OpenAPI contract that is compiled into the program. The contract is
// parsed only once, because parsing takes about 100 ms.
var embeddedContract = sync.OnceValues(func() (*contract, error) { return readContract(reeltally.OpenAPI) })

// readContract parses an OpenAPI document. It fails if an operation lacks a required x- member.
// It does not validate the document: the tests validate openapi.yaml.
func readContract(document string) (*contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData([]byte(document))
	if err != nil {
		return nil, fmt.Errorf("OpenAPI contract: %w", err)
	}
	out := &contract{version: strings.ReplaceAll(doc.Info.Version, ".", "-"), etag: bodyETag([]byte(document)), byRoute: map[string]*operation{}, methods: map[string][]string{}, groups: map[rateGroup][]string{}}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			o, err := readOperation(doc, path, method, item, op)
			if err != nil {
				return nil, fmt.Errorf("OpenAPI contract: the operation %s %s is not valid: %w", method, path, err)
			}
			out.byRoute[method+" "+o.template] = o
			out.methods[o.template] = append(out.methods[o.template], method)
			out.groups[o.group] = append(out.groups[o.group], o.id)
		}
	}
	for _, methods := range out.methods {
		slices.Sort(methods)
	}
	for _, ids := range out.groups {
		slices.Sort(ids)
	}
	if out.json, err = doc.MarshalJSON(); err != nil {
		return nil, fmt.Errorf("OpenAPI contract: %w", err)
	}
	out.tools, err = mcp.ToolsFromOpenAPI(doc)
	return out, err
}

// readOperation converts one operation of an OpenAPI document. It fails if the operation id or a required x- member is missing or invalid.
func readOperation(doc *openapi3.T, path, method string, item *openapi3.PathItem, op *openapi3.Operation) (*operation, error) {
	o := &operation{id: op.OperationID, method: method, template: toRoutePath(path), hasBody: op.RequestBody != nil,
		query: map[string]*openapi3.Parameter{},
		route: &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: op}}
	if o.id == "" {
		return nil, fmt.Errorf("the operation has no operationId")
	}
	group, _ := op.Extensions["x-rate-group"].(string)
	if o.group = rateGroup(group); !slices.Contains(rateGroups[:], o.group) {
		return nil, fmt.Errorf("x-rate-group %q is unknown; it must be %s", group, words.JoinWithOr(rateGroups[:]))
	}
	switch scope, _ := op.Extensions["x-scope"].(string); scope {
	case "any":
	default:
		if o.scope = store.Scope(scope); !slices.Contains(store.Scopes, o.scope) {
			return nil, fmt.Errorf("x-scope %q is unknown; it must be any, read, write or admin", scope)
		}
	}
	o.secretMember, _ = op.Extensions["x-not-stored"].(string)
	o.formats = []string{echo.MIMEApplicationJSON}
	if ok := op.Responses.Status(http.StatusOK); ok != nil && method == http.MethodGet {
		if body := ok.Value.Content[echo.MIMEApplicationJSON]; body != nil {
			o.row = rowSchema(body.Schema.Value)
		}
		for _, format := range slices.Sorted(maps.Keys(ok.Value.Content)) {
			if _, ok := converters[format]; ok {
				o.formats = append(o.formats, format)
			}
		}
	}
	var ok bool
	if o.masked, ok = op.Extensions["x-tier-masked"].(bool); !ok {
		return nil, fmt.Errorf("x-tier-masked must be true or false, not %v", op.Extensions["x-tier-masked"])
	}
	for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
		switch p.Value.In {
		case openapi3.ParameterInQuery:
			if o.query[p.Value.Name] = p.Value; p.Value.Name == "limit" {
				limit, ok := p.Value.Schema.Value.Default.(float64) // the type of a number in decoded JSON
				if !ok {
					return nil, fmt.Errorf("the query parameter limit has no default")
				}
				o.defaultLimit = int(limit)
			}
		case openapi3.ParameterInPath:
			o.path = append(o.path, p.Value.Name)
		case openapi3.ParameterInHeader:
			o.headers = append(o.headers, p.Value.Name)
		}
	}
	return o, nil
}

// toRoutePath converts a path from the syntax of OpenAPI to the syntax of a route in the web framework echo: /videos/{ad_id} becomes
// /videos/:ad_id.
func toRoutePath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

// requestedOperation returns the operation that a request calls, or nil if the request's route is not in the OpenAPI contract. For a HEAD request it
// returns the GET operation.
func (k *contract) requestedOperation(c echo.Context) *operation {
	method := c.Request().Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return k.byRoute[method+" "+c.Path()]
}
