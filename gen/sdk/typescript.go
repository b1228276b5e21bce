package main

import (
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

const typeScriptHead = "// Generated from openapi.yaml by gen/sdk. Do not edit.\n\n"

// typeScriptTypes returns the source of index.d.ts, the declarations of the TypeScript library: a type for each schema, and the class with a
// method for each operation.
func typeScriptTypes(doc *openapi3.T, operations []operation) string {
	var out strings.Builder
	out.WriteString(typeScriptHead + "import { Client, type RequestOptions } from \"./client.js\";\n\n" +
		"export { CSV, CSV_SEMICOLON, NDJSON, XLSX, Client, ReelTallyError, type ClientOptions, type Format, type RequestDetails, type RequestOptions } from \"./client.js\";\n\n")
	for _, name := range schemaNames(doc) {
		s := doc.Components.Schemas[name].Value
		fmt.Fprintf(&out, "/** %s */\n", commentText(firstSentence(s.Description)))
		if s.Type.Is("object") && len(s.Properties) > 0 {
			fmt.Fprintf(&out, "export interface %s %s\n\n", name, typeScriptObjectType(s, ""))
		} else {
			fmt.Fprintf(&out, "export type %s = %s;\n\n", name, typeScriptType(&openapi3.SchemaRef{Value: withoutNull(s)}, ""))
		}
	}
	for i := range operations {
		o := &operations[i]
		if len(o.query) == 0 {
			continue
		}
		fmt.Fprintf(&out, "/** The parameters of {@link ReelTally.%s}. */\nexport interface %s {\n", o.id, paramsName(o))
		for _, p := range o.query {
			fmt.Fprintf(&out, "  /** %s */\n  %s?: %s | undefined;\n", commentText(firstSentence(p.description)), p.name, typeScriptType(p.schema, "  "))
		}
		out.WriteString("}\n\n")
	}
	out.WriteString("/** A client of the API of a ReelTally server. */\nexport class ReelTally extends Client {\n")
	for i := range operations {
		o := &operations[i]
		result := "void"
		if o.result != nil {
			result = typeScriptType(o.result, "  ")
			if o.canBeEmpty {
				result += " | undefined"
			}
		}
		fmt.Fprintf(&out, "  /** %s. `%s %s` */\n  %s(%s): Promise<%s>;\n", commentText(strings.TrimSuffix(o.summary, ".")), o.method, o.path, o.id, typeScriptParams(o), result)
		if o.needsETag {
			fmt.Fprintf(&out, "  /** Does the same as {@link ReelTally.%s}, and also returns the ETag. A change with this ETag as ifMatch fails with the status 412 if the item has changed since this read. */\n  %sWithETag(%s): Promise<[%s, string]>;\n",
				o.id, o.id, typeScriptParams(o), result)
		}
		if o.entry != nil {
			fmt.Fprintf(&out, "  /** Reads all pages of {@link ReelTally.%s}, one after the other, and yields their entries.%s */\n  %s(%s): AsyncGenerator<%s, void, undefined>;\n",
				o.id, o.allPagesNote(o.id), o.allPagesMethod(), strings.ReplaceAll(typeScriptParams(o), paramsName(o), "Omit<"+paramsName(o)+", \"page\">"), typeScriptType(o.entry, "  "))
		}
	}
	out.WriteString("}\n")
	return out.String()
}

// paramsName returns the name of the type of an operation's parameters.
func paramsName(o *operation) string { return strings.ToUpper(o.id[:1]) + o.id[1:] + "Params" }

// typeScriptParams returns the parameters of an operation's method as TypeScript source.
func typeScriptParams(o *operation) string {
	var params []string
	for _, name := range o.pathParams {
		params = append(params, toCamelCase(name)+": string")
	}
	if o.body != nil {
		mark := ""
		if !o.bodyNeeded {
			mark = "?"
		}
		params = append(params, "body"+mark+": "+typeScriptType(o.body, "  "))
	}
	if len(o.query) > 0 {
		params = append(params, "params?: "+paramsName(o))
	}
	return strings.Join(append(params, "options?: RequestOptions"), ", ")
}

// typeScriptType returns the TypeScript type of a schema as source text.
func typeScriptType(ref *openapi3.SchemaRef, indent string) string {
	if name := refName(ref); name != "" {
		if ref.Value.Nullable {
			return name + " | null"
		}
		return name
	}
	s := ref.Value
	t := nonNullType(s, indent)
	if s.Nullable {
		t += " | null"
	}
	return t
}

// nonNullType returns the TypeScript type of a schema as source text, but without null.
func nonNullType(s *openapi3.Schema, indent string) string {
	switch {
	case len(s.OneOf) > 0:
		var either []string
		for _, one := range s.OneOf {
			either = append(either, typeScriptType(one, indent))
		}
		return strings.Join(either, " | ")
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			if v != nil {
				values = append(values, fmt.Sprintf("%#v", v))
			}
		}
		return strings.Join(values, " | ")
	case s.Type.Is("string"):
		return "string"
	case s.Type.Is("integer"), s.Type.Is("number"):
		return "number"
	case s.Type.Is("boolean"):
		return "boolean"
	case s.Type.Is("array"):
		item := typeScriptType(s.Items, indent)
		if strings.ContainsAny(item, " |") {
			return "Array<" + item + ">"
		}
		return item + "[]"
	case len(s.Properties) > 0:
		return typeScriptObjectType(s, indent)
	}
	return "Record<string, unknown>"
}

// typeScriptObjectType returns the TypeScript type of an object as source text.
func typeScriptObjectType(s *openapi3.Schema, indent string) string {
	var out strings.Builder
	out.WriteString("{\n")
	for _, name := range memberNames(s) {
		p := s.Properties[name]
		optional, none := "?", " | undefined"
		for _, required := range s.Required {
			if required == name {
				optional, none = "", ""
			}
		}
		if text := memberComment(p.Value); text != "" {
			fmt.Fprintf(&out, "%s  /** %s */\n", indent, commentText(text))
		}
		fmt.Fprintf(&out, "%s  %s%s: %s%s;\n", indent, name, optional, typeScriptType(p, indent+"  "), none)
	}
	out.WriteString(indent + "}")
	return out.String()
}

// javaScript returns the source of index.js, which has the class with a method for each operation.
func javaScript(operations []operation) string {
	var out strings.Builder
	out.WriteString(typeScriptHead + "import { Client } from \"./client.js\";\n\n" +
		"export { CSV, CSV_SEMICOLON, NDJSON, XLSX, Client, ReelTallyError } from \"./client.js\";\n\nexport class ReelTally extends Client {\n")
	for i := range operations {
		o := &operations[i]
		var names []string
		path := o.path
		for _, name := range o.pathParams {
			names = append(names, toCamelCase(name))
			path = strings.ReplaceAll(path, "{"+name+"}", "${encodeURIComponent("+toCamelCase(name)+")}")
		}
		call := []string{}
		if o.body != nil {
			names, call = append(names, "body"), append(call, "body")
		}
		if len(o.query) > 0 {
			names = append(names, "params")
		}
		switch {
		case o.paginated:
			call = append(call, "query: { ...params, paginated: true }")
		case len(o.query) > 0:
			call = append(call, "query: params")
		}
		if o.keyed {
			call = append(call, "keyed: true")
		}
		signature := strings.Join(append(names, "options"), ", ")
		arguments := fmt.Sprintf("%q, `%s`, { %s }", o.method, path, strings.Join(append(call, "...options"), ", "))
		fmt.Fprintf(&out, "  %s(%s) {\n    return this.request(%s);\n  }\n", o.id, signature, arguments)
		if o.needsETag {
			fmt.Fprintf(&out, "  %sWithETag(%s) {\n    return this.requestWithETag(%s);\n  }\n", o.id, signature, arguments)
		}
		if o.entry != nil {
			withoutParams, first := names[:len(names)-1], "params"
			if largest := o.largestPage(); largest > 0 {
				first = fmt.Sprintf("{ limit: %d, ...params }", largest)
			}
			fmt.Fprintf(&out, "  %s(%s) {\n    return this.pages(%s, next => this.%s(%s));\n  }\n", o.allPagesMethod(), signature, first, o.id,
				strings.Join(append(append([]string{}, withoutParams...), "next", "options"), ", "))
		}
	}
	out.WriteString("}\n")
	return out.String()
}

// commentText makes a text safe for a comment: it replaces "*/", which would end the comment.
func commentText(text string) string { return strings.ReplaceAll(text, "*/", "* /") }

// withoutNull returns a copy of the schema that does not allow null.
func withoutNull(s *openapi3.Schema) *openapi3.Schema {
	c := *s
	c.Nullable = false
	return &c
}
