// Package reeltally embeds the API contract, openapi.yaml, so that every program has the same copy.
package reeltally

import _ "embed"

// OpenAPI is the text of openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI string
