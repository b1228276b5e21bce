// Package gen holds what is generated from openapi.yaml: package api is the server's side, package client the Go
// client. Nothing in the folders below is edited by hand; `make gen` writes them anew and `make gen-check` proves them fresh.
package gen

import _ "embed"

//go:generate go run ../.ci/samples ../openapi.yaml
//go:generate cp ../openapi.yaml api/openapi.yaml
//go:generate go tool oapi-codegen -config api/config.yaml ../openapi.yaml
//go:generate go tool oapi-codegen -config client/config.yaml ../openapi.yaml

// OpenAPI is the contract, byte for byte the openapi.yaml of the repository. It is a copy, since an embed cannot reach
// above its own folder.
//
//go:embed api/openapi.yaml
var OpenAPI string
