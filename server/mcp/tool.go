package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// These values of argument.in are not defined by OpenAPI. The other values are the names that OpenAPI uses: path, query and header.
const (
	inBody   = "body"   // the argument is sent in the request body
	inResult = "result" // the argument selects members of the entries in the result, and is not sent to the API
)

// tool is the MCP tool for one operation of the OpenAPI contract.
type tool struct {
	name        string
	title       string
	description string
	method      string
	path        string // path template of the operation, such as /videos/{ad_id}
	arguments   []argument
	sent        *openapi3.Schema      // schema of the object of the arguments that are sent to the API
	body        *openapi3.RequestBody // nil if the operation has no body
	input       map[string]any        // JSON Schema of the tool's arguments
	output      map[string]any        // JSON Schema of the structured content of the tool's results
	entry       *entry                // describes an entry of the list that the tool returns; nil if the tool returns no list with pages
	untrusted   *untrustedText        // untrusted text in the results; nil if there is none
	responses   *openapi3.Responses
	annotations *sdk.ToolAnnotations
	// hasETag is true if the tool's result contains an ETag that a later call can send as If-Match.
	hasETag bool
}

// argument is one argument of an MCP tool. It becomes part of the HTTP request, or selects members
// of the result.
type argument struct {
	name         string // name of the argument in the tool call
	in           string // where the argument is sent or applied: path, query, header, inBody or inResult
	requestName  string // name of the parameter or body member in the HTTP request
	required     bool
	list         bool             // true for an array parameter; its entries are sent in one text, separated by commas
	nullable     bool             // true for a body member that can be null
	defaultValue json.RawMessage  // the value to send if the tool call lacks the argument; nil if nothing is sent in this case
	isFixed      bool             // true if each request has defaultValue; the tool does not offer such an argument
	schema       map[string]any   // JSON Schema of the argument's value, for clients
	contract     *openapi3.Schema // schema of the argument's value in the OpenAPI contract; nil for inResult
}

// isLimit returns true if the argument is the query parameter "limit", the page size of a list.
func (a argument) isLimit() bool {
	return a.in == openapi3.ParameterInQuery && a.requestName == "limit"
}

// Tools are the MCP tools of an OpenAPI contract, sorted by name. Each tool calls one operation. Tools never change, so that several
// handlers can share them.
type Tools []*tool

// ToolsFromOpenAPI returns a tool for each operation of doc, except operations that need the scope
// "admin" or have x-no-tool. References in doc must be resolved.
func ToolsFromOpenAPI(doc *openapi3.T) (Tools, error) {
	names := toolNames(doc)
	var tools Tools
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.Extensions["x-scope"] == "admin" || op.Extensions["x-no-tool"] == true {
				// Admin operations can return secrets, which must not be in a conversation with a model. An operation with x-no-tool is
				// not useful to a model, for example because its result is too long.
				continue
			}
			t, err := newTool(path, method, item, op, names)
			if err != nil {
				return nil, fmt.Errorf("mcp: cannot make a tool from the operation %s %s: %w", method, path, err)
			}
			tools = append(tools, t)
		}
	}
	slices.SortFunc(tools, func(a, b *tool) int { return strings.Compare(a.name, b.name) })
	return tools, nil
}

// newTool returns the MCP tool for an operation. namesByOperation is the result of toolNames.
func newTool(path, method string, item *openapi3.PathItem, op *openapi3.Operation, namesByOperation map[string]string) (*tool, error) {
	t := &tool{name: snakeCase(op.OperationID), title: op.Summary, method: method, path: path, responses: op.Responses}
	if op.RequestBody != nil {
		t.body = op.RequestBody.Value
	}
	var err error
	if t.arguments, err = toolArguments(append(slices.Clone(item.Parameters), op.Parameters...), t.body); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(t.arguments, argument.isLimit) {
		if t.entry, err = findEntry(op.Responses); err != nil {
			return nil, err
		}
		t.arguments = append(setPageDefaults(t.arguments), t.entry.selectionArgument())
	}
	for _, a := range t.arguments {
		if text, ok := a.schema["description"].(string); ok {
			a.schema["description"] = replaceOperations(text, namesByOperation)
		}
	}
	t.input, t.sent = inputSchema(t.arguments), sentSchema(t.arguments)
	if t.untrusted, err = findUntrustedInResponses(op.Responses); err != nil {
		return nil, err
	}
	t.output = outputSchema(op.Responses)
	// The ETag is useful if an operation of the same path has the header If-Match.
	if method == http.MethodGet {
		for _, other := range item.Operations() {
			t.hasETag = t.hasETag || other.Parameters.GetByInAndName(openapi3.ParameterInHeader, "If-Match") != nil
		}
	}
	t.annotations = annotations(method, op)
	t.description = replaceOperations(toolText(op.Extensions, op.Description, firstParagraph), namesByOperation)
	return t, nil
}

// annotations returns the MCP hints about the effects of a tool. The hints depend on the method and
// on the members x-idempotent and x-open-world.
func annotations(method string, op *openapi3.Operation) *sdk.ToolAnnotations {
	stated, _ := op.Extensions["x-idempotent"].(bool)
	openWorld, _ := op.Extensions["x-open-world"].(bool)
	read := method == http.MethodGet
	destructive := !read && method != http.MethodPost // PUT, PATCH and DELETE replace or remove data; POST only adds data
	return &sdk.ToolAnnotations{ReadOnlyHint: read, DestructiveHint: &destructive,
		IdempotentHint: method != http.MethodPost || stated, OpenWorldHint: &openWorld}
}

// definition returns the tool's entry in the result of the MCP method tools/list.
func (t *tool) definition() *sdk.Tool {
	return &sdk.Tool{Name: t.name, Title: t.title, Description: t.description, Annotations: t.annotations, InputSchema: t.input, OutputSchema: t.output}
}

// snakeCase converts an operationId such as trackVideo to snake case, such as track_video.
func snakeCase(operation string) string {
	var out strings.Builder
	for i, r := range operation {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// toolNames returns the tool name of each operation. The keys are methods with paths: "GET /videos" maps to "list_videos".
func toolNames(doc *openapi3.T) map[string]string {
	names := map[string]string{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			names[method+" "+path] = snakeCase(op.OperationID)
		}
	}
	return names
}

// namedOperation matches the name of an operation in a description, such as `GET /videos?limit=10`. The groups are "GET /videos" and
// "limit=10".
var namedOperation = regexp.MustCompile("`((?:GET|POST|PATCH|PUT|DELETE) /[^`?\\s]*)(?:\\?([^`]*))?`")

// replaceOperations replaces operations in a description by tool names, because a model can call
// only tools. An operation missing in namesByOperation stays unchanged.
func replaceOperations(text string, namesByOperation map[string]string) string {
	return namedOperation.ReplaceAllStringFunc(text, func(found string) string {
		parts := namedOperation.FindStringSubmatch(found)
		name, ok := namesByOperation[parts[1]]
		switch {
		case !ok:
			return found
		case parts[2] != "":
			return "`" + name + "` with `" + parts[2] + "`"
		}
		return "`" + name + "`"
	})
}
