package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// maxDepth is how deep schemas may nest: a schema that contains itself cannot be written without references.
const maxDepth = 32

// readArguments lays the parameters of an operation and the members of its body side by side: path, query, header, body. A
// name that is taken gets the name of its place before it. If-None-Match is left out, since a tool has nothing to show for
// 304.
func readArguments(parameters openapi3.Parameters, body *openapi3.RequestBody) ([]argument, error) {
	var out []argument
	for _, in := range []string{openapi3.ParameterInPath, openapi3.ParameterInQuery, openapi3.ParameterInHeader} {
		for _, p := range parameters {
			if p.Value.In != in || strings.EqualFold(p.Value.Name, "If-None-Match") {
				continue
			}
			schema, err := jsonSchema(p.Value.Schema, 0)
			if err != nil {
				return nil, fmt.Errorf("parameter %s: %w", p.Value.Name, err)
			}
			if p.Value.Description != "" {
				schema["description"] = strings.TrimSpace(p.Value.Description)
			}
			name := p.Value.Name
			if in == openapi3.ParameterInHeader {
				name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
			}
			a := argument{name: name, in: in, wire: p.Value.Name, required: p.Value.Required,
				list: p.Value.Schema.Value.Type.Is(openapi3.TypeArray), schema: schema}
			a.presetForLists()
			out = append(out, a)
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
		if taken[a.name] {
			a.name = a.in + "_" + a.name
		}
		if taken[a.name] {
			return nil, fmt.Errorf("two arguments would be called %s", a.name)
		}
		taken[a.name] = true
	}
	return out, nil
}

// listLimit is the page size of a list if a call sets no limit. The contract's default of 5,000 items is more than a model can read.
const listLimit = 100

// presetForLists sets the default of an argument of lists: a short page, in the form that has a cursor for the next page.
func (a *argument) presetForLists() {
	switch {
	case a.isLimit():
		a.preset, a.schema["default"] = strconv.Itoa(listLimit), listLimit
	case a.in == openapi3.ParameterInQuery && a.wire == "paginated":
		a.preset, a.schema["default"] = "true", true
	}
}

func bodyArguments(body *openapi3.RequestBody) ([]argument, error) {
	if body == nil {
		return nil, nil
	}
	media := body.Content.Get("application/json")
	if media == nil || !media.Schema.Value.Type.Is(openapi3.TypeObject) {
		return nil, errors.New("the body is not a JSON object, whose members could be arguments")
	}
	object := media.Schema.Value
	var out []argument
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		schema, err := jsonSchema(object.Properties[name], 0)
		if err != nil {
			return nil, fmt.Errorf("member %s: %w", name, err)
		}
		out = append(out, argument{name: name, in: inBody, wire: name, required: slices.Contains(object.Required, name), schema: schema})
	}
	return out, nil
}

func inputSchema(arguments []argument) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, a := range arguments {
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

// itemsMember is where a result has the array that an operation answers with: a result is an object.
const itemsMember = "items"

// outputSchema covers everything that an operation answers with JSON of its own: each form once, and an empty object where
// there is no body.
func outputSchema(responses *openapi3.Responses) (map[string]any, *foreign, error) {
	var forms []map[string]any
	var strangers *foreign
	statuses := slices.Sorted(maps.Keys(responses.Map()))
	for _, status := range statuses {
		response := responses.Map()[status].Value
		media := response.Content.Get("application/json")
		switch {
		case media != nil:
			for _, form := range formsOf(media.Schema) {
				schema, err := resultSchema(form)
				if err != nil {
					return nil, nil, fmt.Errorf("answer %s: %w", status, err)
				}
				forms = appendNew(forms, schema)
				found, err := foreignIn(form, 0)
				if err != nil {
					return nil, nil, fmt.Errorf("answer %s: %w", status, err)
				}
				if form.Value.Type.Is(openapi3.TypeArray) && found != nil {
					found = &foreign{members: map[string]*foreign{itemsMember: found}}
				}
				strangers = strangers.merge(found)
			}
		case strings.HasPrefix(status, "2"):
			forms = appendNew(forms, map[string]any{"type": "object", "additionalProperties": false,
				"description": "Empty: " + strings.TrimSpace(*response.Description)})
		}
	}
	switch len(forms) {
	case 0:
		return nil, nil, errors.New("it answers with no JSON")
	case 1:
		return forms[0], strangers, nil
	}
	return map[string]any{"type": "object", "anyOf": forms}, strangers, nil
}

// formsOf are the alternatives of an answer.
func formsOf(ref *openapi3.SchemaRef) openapi3.SchemaRefs {
	if len(ref.Value.OneOf) > 0 {
		return ref.Value.OneOf
	}
	return openapi3.SchemaRefs{ref}
}

func resultSchema(form *openapi3.SchemaRef) (map[string]any, error) {
	schema, err := jsonSchema(form, 0)
	if err != nil {
		return nil, err
	}
	switch {
	case form.Value.Type.Is(openapi3.TypeObject):
		return schema, nil
	case form.Value.Type.Is(openapi3.TypeArray):
		return map[string]any{"type": "object", "properties": map[string]any{itemsMember: schema}, "required": []string{itemsMember}}, nil
	}
	return nil, errors.New("it is neither an object nor an array")
}

func appendNew(forms []map[string]any, form map[string]any) []map[string]any {
	encoded, _ := json.Marshal(form) // made of what was decoded from JSON
	for _, f := range forms {
		if other, _ := json.Marshal(f); bytes.Equal(other, encoded) {
			return forms
		}
	}
	return append(forms, form)
}

// jsonSchema writes a schema of OpenAPI 3.0 as one of JSON Schema 2020-12, its references resolved in place. What is about
// documents and generators (examples, x- members) is left out.
func jsonSchema(ref *openapi3.SchemaRef, depth int) (map[string]any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("its schema nests deeper than %d levels", maxDepth)
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
	for name := range out {
		switch name {
		case "example", "examples", "nullable", "xml", "externalDocs", "discriminator":
			delete(out, name)
		default:
			if strings.HasPrefix(name, "x-") {
				delete(out, name)
			}
		}
	}
	if text, ok := out["description"].(string); ok {
		out["description"] = strings.TrimSpace(text)
	}
	exclusive(out, "exclusiveMinimum", "minimum")
	exclusive(out, "exclusiveMaximum", "maximum")
	if err := nested(out, s, depth+1); err != nil {
		return nil, err
	}
	if s.Nullable {
		out = orNull(out)
	}
	return out, nil
}

// exclusive writes a bound with a flag as a bound of its own.
func exclusive(schema map[string]any, flag, bound string) {
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

// nested resolves the schemas within a schema.
func nested(out map[string]any, s *openapi3.Schema, depth int) error {
	if len(s.Properties) > 0 {
		properties := make(map[string]any, len(s.Properties))
		for name, p := range s.Properties {
			schema, err := jsonSchema(p, depth)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			properties[name] = schema
		}
		out["properties"] = properties
	}
	for name, child := range map[string]*openapi3.SchemaRef{"items": s.Items, "not": s.Not, "additionalProperties": s.AdditionalProperties.Schema} {
		if child == nil {
			continue
		}
		schema, err := jsonSchema(child, depth)
		if err != nil {
			return err
		}
		out[name] = schema
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
		out[name] = schemas
	}
	return nil
}

// orNull lets a schema take null as well.
func orNull(schema map[string]any) map[string]any {
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
