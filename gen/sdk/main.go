// Command sdk generates code of the client libraries from openapi.yaml: the operations for Go (gen/client), and the operations and types for
// TypeScript (gen/typescript) and Python (gen/python). The types for Go come from oapi-codegen. All libraries have the same operations with the
// same parameters. The code that does not depend on openapi.yaml, such as retries, is written by hand in client.go, client.js and _client.py.
//
// `go generate` runs this program in the folder gen. Start reading at run.
package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"
)

func main() {
	if err := run("../openapi.yaml"); err != nil {
		fmt.Fprintln(os.Stderr, "sdk:", err)
		os.Exit(1)
	}
}

// run reads openapi.yaml from contractPath and writes the generated files.
func run(contractPath string) error {
	doc, err := openapi3.NewLoader().LoadFromFile(contractPath)
	if err != nil {
		return err
	}
	operations := readOperations(doc)
	goFile, err := goOperations("client/client.gen.go", operations)
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name string
		text string
	}{
		{"client/operations.gen.go", goFile},
		{"typescript/index.d.ts", typeScriptTypes(doc, operations)},
		{"typescript/index.js", javaScript(operations)},
		{"python/src/reeltally/types.py", pythonTypes(doc)},
		{"python/src/reeltally/api.py", pythonAPI(doc, operations)},
	} {
		if err := os.WriteFile(file.name, []byte(file.text), 0o644); err != nil { //nolint:gosec // the files are read by everyone
			return err
		}
	}
	return nil
}

// operation describes an operation in openapi.yaml, for which the client libraries have a method.
type operation struct {
	id          string // operationId, such as "listVideos"
	method      string
	path        string   // path of the operation, with placeholders such as {ad_id}
	pathParams  []string // path parameters, in the order of the path
	query       []parameter
	body        *openapi3.SchemaRef // schema of the JSON request body; nil if the operation has no request body
	bodyNeeded  bool
	result      *openapi3.SchemaRef // schema of the JSON of a successful response; nil if it has no body
	canBeEmpty  bool                // whether a successful response can also have no body
	entry       *openapi3.SchemaRef // schema of an entry of a page; nil if the operation does not return pages
	paginated   bool                // if true, the client sends paginated=true with each request for a page
	keyed       bool                // whether the operation takes the header Idempotency-Key
	ifMatch     bool                // whether the operation takes the header If-Match
	needsETag   bool                // whether another operation on the same path takes the ETag of this read in the header If-Match
	summary     string
	description string
}

// parameter is a parameter in the query of a request.
type parameter struct {
	name, description string
	schema            *openapi3.SchemaRef
}

// allPagesMethod returns the name of the method that reads all pages of the operation, such as "allVideos".
func (o *operation) allPagesMethod() string {
	for _, verb := range []string{"list", "export"} {
		if rest, ok := strings.CutPrefix(o.id, verb); ok {
			return "all" + rest
		}
	}
	return "all" + strings.ToUpper(o.id[:1]) + o.id[1:]
}

// largestPage returns the largest value of the parameter "limit", with which reading all pages takes the fewest requests. It returns 0 if pages have this
// size without the parameter, or if the operation has no such parameter.
func (o *operation) largestPage() int {
	for _, p := range o.query {
		if p.name == "limit" && p.schema.Value.Max != nil && p.schema.Value.Default != *p.schema.Value.Max {
			return int(*p.schema.Value.Max)
		}
	}
	return 0
}

// allPagesNote returns a sentence for the comment of the method that reads all pages of an operation, or "". It begins with a space. methodName is the
// name of the method that reads one page.
func (o *operation) allPagesNote(methodName string) string {
	if o.result.Value.Properties["exported_until"] == nil {
		return ""
	}
	return fmt.Sprintf(" It leaves out exported_until: if you export repeatedly, use %s, and send its exported_until as updated_since in the next export.", methodName)
}

// readOperations returns all operations of openapi.yaml, in the order of their ids.
func readOperations(doc *openapi3.T) []operation {
	var all []operation
	for path, item := range doc.Paths.Map() {
		var operations []operation
		for method, op := range item.Operations() {
			operations = append(operations, readOperation(path, method, item, op))
		}
		takesETag := slices.ContainsFunc(operations, func(o operation) bool { return o.ifMatch })
		for i := range operations {
			operations[i].needsETag = takesETag && operations[i].method == http.MethodGet
		}
		all = append(all, operations...)
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.id, b.id) })
	return all
}

func readOperation(path, method string, item *openapi3.PathItem, op *openapi3.Operation) operation {
	o := operation{id: op.OperationID, method: method, path: path, summary: op.Summary, description: op.Description}
	hasCursor := false
	for _, ref := range append(slices.Clone(item.Parameters), op.Parameters...) {
		p := ref.Value
		switch {
		case p.In == openapi3.ParameterInPath:
			o.pathParams = append(o.pathParams, p.Name)
		case p.In == openapi3.ParameterInHeader && p.Name == "Idempotency-Key":
			o.keyed = true
		case p.In == openapi3.ParameterInHeader && p.Name == "If-Match":
			o.ifMatch = true
		case p.In == openapi3.ParameterInQuery && p.Name == "paginated":
			o.paginated = true
		case p.In == openapi3.ParameterInQuery:
			hasCursor = hasCursor || p.Name == "cursor"
			o.query = append(o.query, parameter{p.Name, p.Description, p.Schema})
		}
	}
	if op.RequestBody != nil {
		o.body, o.bodyNeeded = op.RequestBody.Value.Content["application/json"].Schema, op.RequestBody.Value.Required
	}
	o.result = resultSchema(op)
	accepted := op.Responses.Status(http.StatusAccepted)
	o.canBeEmpty = o.result != nil && accepted != nil && len(accepted.Value.Content) == 0
	if hasCursor && !isEndlessList(o.result) {
		o.entry = o.result.Value.Properties["data"].Value.Items
	}
	return o
}

// isEndlessList returns true if a list has no last page: its member next_cursor is never null, because new entries are added at its end.
func isEndlessList(result *openapi3.SchemaRef) bool {
	next := result.Value.Properties["next_cursor"]
	return next != nil && !next.Value.Nullable
}

// resultSchema returns the schema of the JSON that an operation returns if it succeeds, or nil if it returns no JSON.
func resultSchema(op *openapi3.Operation) *openapi3.SchemaRef {
	var results openapi3.SchemaRefs
	for _, status := range []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusMultiStatus, http.StatusUnprocessableEntity} {
		response := op.Responses.Status(status)
		if response == nil || response.Value.Content["application/json"] == nil {
			continue
		}
		result := pageSchema(response.Value.Content["application/json"].Schema)
		if !slices.ContainsFunc(results, func(known *openapi3.SchemaRef) bool { return known.Ref == result.Ref }) {
			results = append(results, result)
		}
	}
	switch len(results) {
	case 0:
		return nil
	case 1:
		return results[0]
	}
	return &openapi3.SchemaRef{Value: &openapi3.Schema{OneOf: results}}
}

// pageSchema returns the schema of a page. Some operations return an array or a page (oneOf): for these, pageSchema selects the page. Any other
// schema is returned unchanged.
func pageSchema(response *openapi3.SchemaRef) *openapi3.SchemaRef {
	for _, either := range response.Value.OneOf {
		if either.Value.Properties["data"] != nil {
			return either
		}
	}
	return response
}

// schemaNames returns the names of the schemas in openapi.yaml, sorted.
func schemaNames(doc *openapi3.T) []string {
	names := make([]string, 0, len(doc.Components.Schemas))
	for name := range doc.Components.Schemas {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// refName returns the name of the schema to which ref refers, or "" if ref contains the schema itself.
func refName(ref *openapi3.SchemaRef) string {
	return strings.TrimPrefix(ref.Ref, "#/components/schemas/")
}

// memberNames returns the names of the members of an object, sorted.
func memberNames(s *openapi3.Schema) []string {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// toCamelCase converts a name such as ad_id to adId.
func toCamelCase(name string) string {
	var out strings.Builder
	upper := false
	for _, r := range name {
		switch {
		case r == '_':
			upper = true
		case upper:
			out.WriteRune(unicode.ToUpper(r))
			upper = false
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// toSnakeCase converts a name such as listVideos to list_videos.
func toSnakeCase(name string) string {
	var out strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// memberComment returns the comment of a member of an object: the first sentence of its description, and how many entries it can have.
func memberComment(s *openapi3.Schema) string {
	text := firstSentence(s.Description)
	if text != "" && s.MaxItems != nil {
		text = fmt.Sprintf("%s. At most %d entries.", strings.TrimSuffix(text, "."), *s.MaxItems)
	}
	return text
}

// firstSentence returns the first sentence of a description on one line.
func firstSentence(description string) string {
	text := strings.Join(strings.Fields(description), " ")
	if end := strings.Index(text, ". "); end >= 0 {
		text = text[:end+1]
	}
	return text
}
