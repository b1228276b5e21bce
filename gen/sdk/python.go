package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

const pythonHead = "# Generated from openapi.yaml by gen/sdk. Do not edit.\n"

// pythonTypes returns the source of the Python module types.py, which has a type for each schema.
func pythonTypes(doc *openapi3.T) string {
	p := pythonWriter{}
	for _, name := range schemaNames(doc) {
		p.writeSchema(name, doc.Components.Schemas[name].Value)
	}
	return pythonHead + `"""The types of requests and responses. All times are strings in the format of RFC 3339. All days are strings in the format YYYY-MM-DD."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, Union

` + p.objects.String() + p.aliases.String()
}

// pythonWriter collects the source of the classes and of the type aliases. The aliases are written after the classes, because Python evaluates
// an alias when it loads the module.
type pythonWriter struct{ objects, aliases strings.Builder }

// writeSchema writes the Python type with the given name for a schema. The type is a class, or a type alias if the schema is not an object with
// members.
func (p *pythonWriter) writeSchema(name string, s *openapi3.Schema) {
	if !s.Type.Is("object") || len(s.Properties) == 0 {
		fmt.Fprintf(&p.aliases, "\n%s: TypeAlias = %q\n", name, p.nonNullType(name, s))
		return
	}
	var body strings.Builder
	fmt.Fprintf(&body, "\nclass %s(TypedDict):\n    %s\n\n", name, formatDocstring(firstSentence(s.Description)))
	for _, member := range memberNames(s) {
		property := s.Properties[member]
		t := p.pythonType(name+"_"+member, property)
		if !slices.Contains(s.Required, member) {
			t = "NotRequired[" + t + "]"
		}
		if text := memberComment(property.Value); text != "" {
			fmt.Fprintf(&body, "    # %s\n", text)
		}
		fmt.Fprintf(&body, "    %s: %s\n", member, t)
	}
	p.objects.WriteString(body.String() + "\n")
}

// pythonType returns the Python type of a schema as source text. An object that has no name in openapi.yaml becomes a class with the given
// name.
func (p *pythonWriter) pythonType(name string, ref *openapi3.SchemaRef) string {
	t := refName(ref)
	if t == "" {
		t = p.nonNullType(name, ref.Value)
	}
	if ref.Value.Nullable {
		t += " | None"
	}
	return t
}

func (p *pythonWriter) nonNullType(name string, s *openapi3.Schema) string {
	switch {
	case len(s.OneOf) > 0:
		var either []string
		for _, one := range s.OneOf {
			either = append(either, p.pythonType(name, one))
		}
		return "Union[" + strings.Join(either, ", ") + "]"
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			switch v := v.(type) {
			case nil:
			case bool:
				values = append(values, map[bool]string{true: "True", false: "False"}[v])
			default:
				values = append(values, fmt.Sprintf("%#v", v))
			}
		}
		return "Literal[" + strings.Join(values, ", ") + "]"
	case s.Type.Is("string"):
		return "str"
	case s.Type.Is("integer"):
		return "int"
	case s.Type.Is("number"):
		return "float"
	case s.Type.Is("boolean"):
		return "bool"
	case s.Type.Is("array"):
		return "list[" + p.pythonType(name, s.Items) + "]"
	case len(s.Properties) > 0:
		class := toPascalCase(name)
		p.writeSchema(class, s)
		return class
	}
	return "dict[str, Any]"
}

// toPascalCase converts a name such as Problem_errors to ProblemErrors.
func toPascalCase(name string) string {
	c := toCamelCase(name)
	return strings.ToUpper(c[:1]) + c[1:]
}

// pythonAPI returns the source of the Python module api.py, which has a class with a method for each operation.
func pythonAPI(doc *openapi3.T, operations []operation) string {
	var out strings.Builder
	out.WriteString(pythonHead + `"""The operations of the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, cast

from . import types as t
from ._client import Client, quote


class ReelTally(Client):
    """A client of the API of a ReelTally server."""
`)
	named := make(map[string]bool, len(doc.Components.Schemas))
	for name := range doc.Components.Schemas {
		named[name] = true
	}
	qualify := func(ref *openapi3.SchemaRef) string {
		p := pythonWriter{}
		text := p.pythonType("Inline", ref)
		return qualifyNames(text, named)
	}
	for i := range operations {
		o := &operations[i]
		positional, call := []string{"self"}, []string{}
		path := o.path
		for _, name := range o.pathParams {
			positional = append(positional, name+": str")
			path = strings.ReplaceAll(path, "{"+name+"}", "{quote("+name+")}")
		}
		if len(o.pathParams) > 0 {
			path = fmt.Sprintf("f%q", path)
		} else {
			path = fmt.Sprintf("%q", path)
		}
		if o.body != nil {
			kind := qualify(o.body)
			if !o.bodyNeeded {
				kind += " | None = None"
			}
			positional, call = append(positional, "body: "+kind), append(call, "body=body")
		}
		var query, items []string
		for _, p := range o.query {
			query = append(query, p.name+": "+qualify(p.schema)+" | None = None")
			items = append(items, fmt.Sprintf("%q: %s", p.name, p.name))
		}
		if o.paginated {
			items = append(items, `"paginated": True`)
		}
		if len(items) > 0 {
			call = append(call, "query={"+strings.Join(items, ", ")+"}")
		}
		var headers []string
		if o.keyed {
			headers, call = append(headers, "idempotency_key: str | None = None"), append(call, "keyed=True, idempotency_key=idempotency_key")
		}
		if o.ifMatch {
			headers, call = append(headers, "if_match: str | None = None"), append(call, "if_match=if_match")
		}
		if len(headers)+len(query) > 0 {
			positional = append(append(positional, "*"), headers...)
		}
		result := "None"
		if o.result != nil {
			result = qualify(o.result)
			if o.canBeEmpty {
				result += " | None"
			}
		}
		parameters := strings.Join(append(slices.Clone(positional), query...), ", ")
		fmt.Fprintf(&out, "\n    def %s(%s) -> %s:\n        %s\n", toSnakeCase(o.id), parameters, result, formatDocstring(fmt.Sprintf("%s. `%s %s`", strings.TrimSuffix(o.summary, "."), o.method, o.path)))
		requestArguments := fmt.Sprintf("(%q, %s%s)", o.method, path, strings.Join(append([]string{""}, call...), ", "))
		request := "self.request" + requestArguments
		if result == "None" {
			fmt.Fprintf(&out, "        %s\n", request)
		} else {
			fmt.Fprintf(&out, "        return cast(%q, %s)\n", result, request)
		}
		if o.needsETag {
			pair := "tuple[" + result + ", str]"
			fmt.Fprintf(&out, "\n    def %s_with_etag(%s) -> %s:\n        %s\n        return cast(%q, self.request_with_etag%s)\n", toSnakeCase(o.id), parameters, pair,
				formatDocstring(fmt.Sprintf("Does the same as %s, and also returns the ETag. A change with this ETag as if_match fails with the status 412 if the item has changed since this read.", toSnakeCase(o.id))), pair, requestArguments)
		}
		if o.entry == nil {
			continue
		}
		arguments := slices.Clone(o.pathParams)
		if largest := o.largestPage(); largest > 0 {
			parameters = strings.ReplaceAll(parameters, "limit: int | None = None", fmt.Sprintf("limit: int | None = %d", largest))
		}
		for _, p := range o.query {
			switch p.name {
			case "page": // the parameter "page" is left out, because the method that reads all pages uses a cursor instead of a page number
				parameters = strings.ReplaceAll(parameters, ", page: int | None = None", "")
			case "cursor":
				arguments = append(arguments, "cursor=after")
			default:
				arguments = append(arguments, p.name+"="+p.name)
			}
		}
		fmt.Fprintf(&out, "\n    def %s(%s) -> Iterator[%s]:\n        %s\n        return self.pages(lambda after: cast(dict[str, Any], self.%s(%s)), cursor)\n", toSnakeCase(o.allPagesMethod()), parameters, qualify(o.entry),
			formatDocstring(fmt.Sprintf("Reads all pages of %s, one after the other, and yields their entries.%s", toSnakeCase(o.id), o.allPagesNote(toSnakeCase(o.id)))), toSnakeCase(o.id), strings.Join(arguments, ", "))
	}
	return out.String()
}

// qualifyNames adds the prefix "t." to each name of a schema that occurs in `text`, the source text of a Python
// type. The keys of knownNames are the names of all schemas.
func qualifyNames(text string, knownNames map[string]bool) string {
	var out strings.Builder
	for _, part := range splitNames(text) {
		if knownNames[part] {
			out.WriteString("t.")
		}
		out.WriteString(part)
	}
	return out.String()
}

// splitNames splits the source text of a Python type into names and the characters between them. A text in quotes stays one part.
func splitNames(text string) []string {
	var parts []string
	start, inName, inText := 0, false, false
	isName := func(c byte) bool {
		return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
	}
	for i := range len(text) {
		if text[i] == '"' {
			inText = !inText
		}
		if now := isName(text[i]) && !inText; i > 0 && now != inName {
			parts = append(parts, text[start:i])
			start = i
		}
		inName = isName(text[i]) && !inText
	}
	return append(parts, text[start:])
}

// formatDocstring returns a text as a Python docstring.
func formatDocstring(text string) string {
	if text == "" {
		text = "Has no description."
	}
	return `"""` + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"""`, `'''`) + `"""`
}
