package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/server/mcp"
	"github.com/reeltally/reeltally/store"
)

// operation is an operation of the contract, with the values of its x- members.
type operation struct {
	id       string
	method   string
	template string // the path in the syntax of echo, such as /videos/:ad_id
	group    rateGroup
	scope    store.Scope // the scope that the token must have; "" if every valid token is allowed
	masked   bool        // some tiers get a response without metrics
	hasBody  bool
	query    map[string]*openapi3.Parameter // the query parameters by name
	path     []string                       // names of the path parameters
	headers  []string                       // names of the header parameters
	route    *routers.Route                 // input of the validator
}

// bodySchema returns the schema of the request body, or nil if the operation has no request body.
func (o *operation) bodySchema() *openapi3.Schema {
	if !o.hasBody {
		return nil
	}
	return o.route.Operation.RequestBody.Value.Content.Get("application/json").Schema.Value
}

// queryNames returns the sorted names of the query parameters.
func (o *operation) queryNames() []string {
	names := make([]string, 0, len(o.query))
	for n := range o.query {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// operations contains the operations of the contract. They are indexed by the route that echo matches, so no second router is needed.
type operations struct {
	doc     *openapi3.T
	version string                // the version of the contract
	byRoute map[string]*operation // "METHOD TEMPLATE" → operation
	methods map[string][]string   // template → sorted methods
	sorted  []*operation          // all operations, sorted by id
}

// contract is what the server needs of the OpenAPI document.
type contract struct {
	*operations
	json  []byte    // the document as JSON, which GET /openapi.json returns
	tools mcp.Tools // the MCP tools, one for each operation
}

// embeddedContract returns the contract that is compiled into the program. Reading it takes about 100 ms, so all servers of a process share it.
var embeddedContract = sync.OnceValues(func() (*contract, error) {
	ops, err := readOperations(reeltally.OpenAPI)
	if err != nil {
		return nil, err
	}
	c := &contract{operations: ops}
	if c.json, err = ops.doc.MarshalJSON(); err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	c.tools, err = mcp.ReadTools(ops.doc)
	return c, err
})

// readOperations parses an OpenAPI document. It fails if an operation lacks a required x- member. It does not validate the document.
// The document is compiled into the program, so the tests validate it.
func readOperations(document string) (*operations, error) {
	doc, err := openapi3.NewLoader().LoadFromData([]byte(document))
	if err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	ops := &operations{doc: doc, version: doc.Info.Version, byRoute: map[string]*operation{}, methods: map[string][]string{}}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			o, err := readOperation(doc, path, method, item, op)
			if err != nil {
				return nil, fmt.Errorf("contract: %s %s: %w", method, path, err)
			}
			ops.byRoute[method+" "+o.template] = o
			ops.methods[o.template] = append(ops.methods[o.template], method)
			ops.sorted = append(ops.sorted, o)
		}
	}
	for _, methods := range ops.methods {
		slices.Sort(methods)
	}
	slices.SortFunc(ops.sorted, func(a, b *operation) int { return strings.Compare(a.id, b.id) })
	return ops, nil
}

// readOperation reads one operation of the contract.
func readOperation(doc *openapi3.T, path, method string, item *openapi3.PathItem, op *openapi3.Operation) (*operation, error) {
	o := &operation{id: op.OperationID, method: method, template: echoTemplate(path), hasBody: op.RequestBody != nil,
		query: map[string]*openapi3.Parameter{},
		route: &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: op}}
	if o.id == "" {
		return nil, fmt.Errorf("operationId is missing")
	}
	group, _ := op.Extensions["x-rate-group"].(string)
	if o.group = rateGroup(group); !slices.Contains(rateGroups[:], o.group) {
		return nil, fmt.Errorf("x-rate-group %q is not one of %v", group, rateGroups)
	}
	switch scope, _ := op.Extensions["x-scope"].(string); scope {
	case "any":
	case string(store.ScopeRead), string(store.ScopeWrite):
		o.scope = store.Scope(scope)
	default:
		return nil, fmt.Errorf("x-scope %q is not one of any, read, write", scope)
	}
	var ok bool
	if o.masked, ok = op.Extensions["x-tier-masked"].(bool); !ok {
		return nil, fmt.Errorf("x-tier-masked is not true or false")
	}
	for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
		switch p.Value.In {
		case openapi3.ParameterInQuery:
			o.query[p.Value.Name] = p.Value
		case openapi3.ParameterInPath:
			o.path = append(o.path, p.Value.Name)
		case openapi3.ParameterInHeader:
			o.headers = append(o.headers, p.Value.Name)
		}
	}
	return o, nil
}

// echoTemplate converts a path to the syntax of echo: /videos/{ad_id} becomes /videos/:ad_id.
func echoTemplate(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

// match returns the operation of a request, or nil if the route is not in the contract. For HEAD it returns the operation of GET.
func (ops *operations) match(c echo.Context) *operation {
	method := c.Request().Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return ops.byRoute[method+" "+c.Path()]
}
