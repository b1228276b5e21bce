// Package reeltally embeds the API contract, openapi.yaml, so that every program has the same copy. It also names the header for made-up data,
// because packages that must not import each other use it.
package reeltally

import _ "embed"

// OpenAPI is the text of openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI string

// SandboxHeader is the name of the HTTP header that is "true" if the data of a response are made up. Each response of the sandbox has this header.
// A response of the API has it if the numbers in the database come from the sandbox.
const SandboxHeader = "ReelTally-Sandbox"
