// Package reeltally holds the contract, so that every program embeds the one openapi.yaml of the repository.
package reeltally

import _ "embed"

// OpenAPI is the contract, byte for byte the openapi.yaml of the repository.
//
//go:embed openapi.yaml
var OpenAPI string
