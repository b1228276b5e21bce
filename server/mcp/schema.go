package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// maxDepth is the maximum nesting depth of an OpenAPI schema. A recursive schema exceeds maxDepth, so that its conversion ends with an
// error.
const maxDepth = 32

// toolArguments returns the arguments of a tool: the parameters of the operation and the members of
// its request body.
func toolArguments(parameters openapi3.Parameters, body *openapi3.RequestBody) ([]argument, error) {
	var out []argument
	for _, in := range []string{openapi3.ParameterInPath, openapi3.ParameterInQuery, openapi3.ParameterInHeader} {
		for _, p := range parameters {
			// If-None-Match is left out, because a tool has no result for status 304.
			if p.Value.In != in || strings.EqualFold(p.Value.Name, "If-None-Match") {
				continue
			}
			schema, err := jsonSchema(p.Value.Schema, 0)
			if err != nil {
				return nil, fmt.Errorf("parameter %s: %w", p.Value.Name, err)
			}
			if text := toolText(p.Value.Extensions, p.Value.Description, firstSentence); text != "" {
				schema["description"] = text
			}
			name := p.Value.Name
			if in == openapi3.ParameterInHeader {
				name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
			}
			out = append(out, argument{name: name, in: in, requestName: p.Value.Name, required: p.Value.Required,
				list: p.Value.Schema.Value.Type.Is(openapi3.TypeArray), schema: schema, contract: p.Value.Schema.Value})
		}
	}
	members, err := bodyArguments(body)
	if err != nil {
		return nil, err
	}
	out = append(out, members...)
	taken := map[string]bool{}
	for i := range out {
		a := &out[i]
		// The second argument of the same name gets a prefix such as body_.
		if taken[a.name] {
			a.name = a.in + "_" + a.name
		}
		if taken[a.name] {
			return nil, fmt.Errorf("two arguments of the tool have the name %s", a.name)
		}
		taken[a.name] = true
	}
	return out, nil
}

// bodyArguments returns a tool argument for each member of the request body, sorted by name. requestBody is nil if the operation has no
// request body.
func bodyArguments(requestBody *openapi3.RequestBody) ([]argument, error) {
	if requestBody == nil {
		return nil, nil
	}
	media := requestBody.Content.Get("application/json")
	if media == nil || !media.Schema.Value.Type.Is(openapi3.TypeObject) {
		return nil, errors.New("the request body is not a JSON object")
	}
	object := media.Schema.Value
	var out []argument
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		schema, err := jsonSchema(object.Properties[name], 0)
		if err != nil {
			return nil, fmt.Errorf("member %s: %w", name, err)
		}
		out = append(out, argument{name: name, in: inBody, requestName: name, required: slices.Contains(object.Required, name),
			nullable: object.Properties[name].Value.Nullable, schema: schema, contract: object.Properties[name].Value})
	}
	return out, nil
}

// inputSchema returns the JSON Schema of the object that contains a tool's arguments.
func inputSchema(arguments []argument) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, a := range arguments {
		if a.isFixed {
			continue
		}
		properties[a.name] = a.schema
		if a.required {
			required = append(required, a.name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// sentSchema returns the contract's schema of the object of the arguments that are sent to the API. Unlike inputSchema, it has all limits of
// the values.
func sentSchema(arguments []argument) *openapi3.Schema {
	schema := openapi3.NewObjectSchema()
	for _, a := range arguments {
		if a.contract != nil {
			schema.WithProperty(a.name, a.contract)
		}
	}
	return schema
}

// itemsMember is the name of the member that contains the API's response if the response is an
// array. MCP requires an object as structured content.
const itemsMember = "items"

// outputSchema returns the JSON Schema of a tool's structured content. The schema has the members
// of all possible responses. All members are optional, because responses differ.
func outputSchema(responses *openapi3.Responses) map[string]any {
	properties := map[string]any{}
	for _, form := range resultSchemas(responses) {
		members := form.Value.Properties
		if form.Value.Type.Is(openapi3.TypeArray) {
			members = openapi3.Schemas{itemsMember: form}
		}
		for name, member := range members {
			// Only the type is kept, so that the tool's definition is short.
			schema := typeSchema(member.Value)
			if other, ok := properties[name]; ok && !reflect.DeepEqual(other, schema) {
				schema = map[string]any{} // the member has different types in two response schemas
			}
			properties[name] = schema
		}
	}
	return map[string]any{"type": openapi3.TypeObject, "properties": properties}
}

// typeSchema returns a JSON Schema that contains only the type of s. If s has no type, the JSON Schema accepts every value.
func typeSchema(s *openapi3.Schema) map[string]any {
	types := s.Type.Slice()
	switch {
	case len(types) != 1:
		return map[string]any{}
	case s.Nullable:
		return map[string]any{"type": []string{types[0], "null"}}
	}
	return map[string]any{"type": types[0]}
}

// resultSchemas returns the schemas of all responses of type application/json, in the order of the
// status codes.
func resultSchemas(responses *openapi3.Responses) openapi3.SchemaRefs {
	var schemas openapi3.SchemaRefs
	for _, status := range slices.Sorted(maps.Keys(responses.Map())) {
		// Among errors, only completely failed bulk requests have a response of this type.
		if media := responses.Map()[status].Value.Content.Get("application/json"); media != nil {
			schemas = append(schemas, schemaAlternatives(media.Schema)...)
		}
	}
	return schemas
}

// schemaAlternatives returns the schemas in the keyword oneOf of a schema. If the schema has no oneOf, the result contains only the schema
// itself.
func schemaAlternatives(ref *openapi3.SchemaRef) openapi3.SchemaRefs {
	if len(ref.Value.OneOf) > 0 {
		return ref.Value.OneOf
	}
	return openapi3.SchemaRefs{ref}
}

// omittedKeywords are the keywords that jsonSchema removes from OpenAPI schemas. A model does not
// need limits of values, because the server's error messages state them.
var omittedKeywords = []string{"example", "examples", "nullable", "xml", "externalDocs", "discriminator",
	"minLength", "maxLength", "pattern", "minItems", "uniqueItems"}

// usefulFormats are the formats that jsonSchema keeps. They show a language model in which form it must write a value.
var usefulFormats = []string{"date", "date-time", "uuid"}

// jsonSchema converts a schema of OpenAPI 3.0 to JSON Schema 2020-12. The result has only what a
// model needs. depth is the schema's nesting depth.
func jsonSchema(ref *openapi3.SchemaRef, depth int) (map[string]any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the schema is nested deeper than %d levels", maxDepth)
	}
	s := ref.Value
	encoded, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		return nil, err
	}
	maps.DeleteFunc(out, func(name string, _ any) bool {
		return strings.HasPrefix(name, "x-") || slices.Contains(omittedKeywords, name)
	})
	if !slices.Contains(usefulFormats, s.Format) {
		delete(out, "format")
	}
	if s.Max != nil && *s.Max >= math.MaxInt32 {
		delete(out, "maximum")
	}
	// Only the outermost schema keeps its description, so that the result is short.
	delete(out, "description")
	if text := toolText(s.Extensions, s.Description, firstSentence); text != "" && depth == 0 {
		out["description"] = text
	}
	convertExclusiveBound(out, "exclusiveMinimum", "minimum")
	convertExclusiveBound(out, "exclusiveMaximum", "maximum")
	// convertNested replaces references by the schemas that they name.
	if err := convertNested(out, s, depth+1); err != nil {
		return nil, err
	}
	if s.Nullable {
		out = allowNull(out)
	}
	return out, nil
}

// convertExclusiveBound converts an exclusive bound of OpenAPI 3.0 to JSON Schema. For example,
// {"minimum": 0, "exclusiveMinimum": true} becomes {"exclusiveMinimum": 0}.
func convertExclusiveBound(schema map[string]any, flag, bound string) {
	set, isFlag := schema[flag].(bool)
	if !isFlag {
		return
	}
	delete(schema, flag)
	if set {
		schema[flag] = schema[bound]
		delete(schema, bound)
	}
}

// convertNested converts the schemas inside s, for example its properties and items, to JSON Schema and adds the results to
// convertedSchema.
func convertNested(convertedSchema map[string]any, s *openapi3.Schema, depth int) error {
	if len(s.Properties) > 0 {
		properties := make(map[string]any, len(s.Properties))
		for name, p := range s.Properties {
			schema, err := jsonSchema(p, depth)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			properties[name] = schema
		}
		convertedSchema["properties"] = properties
	}
	for name, child := range map[string]*openapi3.SchemaRef{"items": s.Items, "not": s.Not, "additionalProperties": s.AdditionalProperties.Schema} {
		if child == nil {
			continue
		}
		schema, err := jsonSchema(child, depth)
		if err != nil {
			return err
		}
		convertedSchema[name] = schema
	}
	for name, children := range map[string]openapi3.SchemaRefs{"allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf} {
		if len(children) == 0 {
			continue
		}
		schemas := make([]any, len(children))
		for i, child := range children {
			schema, err := jsonSchema(child, depth)
			if err != nil {
				return err
			}
			schemas[i] = schema
		}
		convertedSchema[name] = schemas
	}
	return nil
}

// allowNull returns a JSON Schema that accepts null and every value that the given schema accepts. It can change the given schema.
func allowNull(schema map[string]any) map[string]any {
	kind, typed := schema["type"].(string)
	if !typed {
		return map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
	}
	schema["type"] = []any{kind, "null"}
	if values, ok := schema["enum"].([]any); ok && !slices.Contains(values, nil) {
		schema["enum"] = append(values, nil)
	}
	return schema
}
