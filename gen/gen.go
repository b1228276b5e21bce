// Package gen holds the code that is generated from openapi.yaml: package api is the server's side, package client is the
// Go client. `make gen` writes both folders anew, and `make gen-check` fails if they are not what openapi.yaml generates.
//
// overlay.yaml leaves out of the generated code what no Go code uses. The contract that servers hand out stays complete.
package gen

//go:generate go tool oapi-codegen -config api/config.yaml ../openapi.yaml
//go:generate go tool oapi-codegen -config client/config.yaml ../openapi.yaml
