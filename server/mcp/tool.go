package mcp

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// inBody is where the members of the body are, beside OpenAPI's own path, query and header.
const inBody = "body"

// tool is an operation as an assistant sees it.
type tool struct {
	name        string
	title       string
	description string
	method      string
	path        string // as the contract writes it
	arguments   []argument
	body        *openapi3.RequestBody // nil when it takes none
	input       map[string]any
	output      map[string]any
	foreign     *foreign // what in a result was written by strangers; nil when nothing was
	responses   *openapi3.Responses
	annotations *sdk.ToolAnnotations
	// tagged says that the result's ETag is what another tool of the same path takes as if_match.
	tagged bool
}

// argument is one member of a tool's flat input.
type argument struct {
	name     string // as the tool has it
	in       string
	wire     string // as the request has it
	required bool
	list     bool   // an array, its entries separated by commas
	preset   string // the value if a call does not have the argument; "" for none
	schema   map[string]any
}

// isLimit says whether the argument is the page size of a list.
func (a argument) isLimit() bool { return a.in == openapi3.ParameterInQuery && a.wire == "limit" }

// readTools makes the tools of a contract, ordered by name.
func readTools(doc *openapi3.T) ([]*tool, error) {
	names := toolNames(doc)
	var tools []*tool
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			t, err := readTool(path, method, item, op, names)
			if err != nil {
				return nil, fmt.Errorf("mcp: %s %s: %w", method, path, err)
			}
			tools = append(tools, t)
		}
	}
	slices.SortFunc(tools, func(a, b *tool) int { return strings.Compare(a.name, b.name) })
	return tools, nil
}

func readTool(path, method string, item *openapi3.PathItem, op *openapi3.Operation, names map[string]string) (*tool, error) {
	t := &tool{name: snakeCase(op.OperationID), title: op.Summary, method: method, path: path, responses: op.Responses}
	if op.RequestBody != nil {
		t.body = op.RequestBody.Value
	}
	var err error
	if t.arguments, err = readArguments(append(slices.Clone(item.Parameters), op.Parameters...), t.body); err != nil {
		return nil, err
	}
	for _, a := range t.arguments {
		if text, ok := a.schema["description"].(string); ok {
			a.schema["description"] = nameTools(text, names)
		}
	}
	t.input = inputSchema(t.arguments)
	if t.output, t.foreign, err = outputSchema(op.Responses); err != nil {
		return nil, err
	}
	if method == http.MethodGet {
		for _, other := range item.Operations() {
			t.tagged = t.tagged || other.Parameters.GetByInAndName(openapi3.ParameterInHeader, "If-Match") != nil
		}
	}
	t.annotations = annotate(method, op)
	t.description = describe(op, t, names)
	return t, nil
}

// annotate says what a tool may do to the world, from the method and two facts that the contract states where the method
// does not say it: x-idempotent of a POST, and x-open-world of whatever follows a link or asks a platform.
func annotate(method string, op *openapi3.Operation) *sdk.ToolAnnotations {
	stated, _ := op.Extensions["x-idempotent"].(bool)
	openWorld, _ := op.Extensions["x-open-world"].(bool)
	read := method == http.MethodGet
	destructive := !read && method != http.MethodPost // a POST adds, the others replace or remove
	return &sdk.ToolAnnotations{Title: op.Summary, ReadOnlyHint: read, DestructiveHint: &destructive,
		IdempotentHint: method != http.MethodPost || stated, OpenWorldHint: &openWorld}
}

func describe(op *openapi3.Operation, t *tool, names map[string]string) string {
	text := strings.TrimSpace(nameTools(op.Description, names))
	if slices.ContainsFunc(t.arguments, func(a argument) bool { return a.in == openapi3.ParameterInPath || a.in == openapi3.ParameterInQuery }) {
		text += "\n\nArguments are given plainly, never percent-encoded."
	}
	if slices.ContainsFunc(t.arguments, argument.isLimit) {
		text += "\n\n" + sizeRule
	}
	if t.foreign != nil {
		text += "\n\n" + foreignRule
	}
	return text
}

// describe is the tool as it is listed.
func (t *tool) describe() *sdk.Tool {
	listed := &sdk.Tool{Name: t.name, Title: t.title, Description: t.description, Annotations: t.annotations,
		InputSchema: t.input, OutputSchema: t.output}
	if t.foreign != nil {
		listed.Meta = sdk.Meta{metaForeign: t.foreign.pointers()}
	}
	return listed
}

// snakeCase writes trackVideo as track_video.
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

// toolNames maps operations, as descriptions name them, to tools.
func toolNames(doc *openapi3.T) map[string]string {
	names := map[string]string{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			names[method+" "+path] = snakeCase(op.OperationID)
		}
	}
	return names
}

var namedOperation = regexp.MustCompile("`((?:GET|POST|PATCH|PUT|DELETE) /[^`?\\s]*)(?:\\?([^`]*))?`")

// nameTools writes the names of tools where a description names operations: an assistant has only those.
func nameTools(text string, names map[string]string) string {
	return namedOperation.ReplaceAllStringFunc(text, func(found string) string {
		parts := namedOperation.FindStringSubmatch(found)
		name, ok := names[parts[1]]
		switch {
		case !ok:
			return found
		case parts[2] != "":
			return "`" + name + "` with `" + parts[2] + "`"
		}
		return "`" + name + "`"
	})
}
