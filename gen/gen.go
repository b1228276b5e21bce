// Package gen contains the code that is generated from openapi.yaml: package api for the server, package client for Go clients, and the
// client libraries for TypeScript and Python.
//
// `make gen` generates all of them, and `make gen-check` fails if they are out of date. The Go code is generated without the parts of
// openapi.yaml that api/overlay.yaml and client/overlay.yaml remove.
package gen

import "embed"

// Readmes are the documents of the client libraries. Servers show them below /docs/guides.
//
//go:embed client/README.md typescript/README.md python/README.md
var Readmes embed.FS

//go:generate go tool oapi-codegen -config api/config.yaml ../openapi.yaml
//go:generate go tool oapi-codegen -config client/config.yaml ../openapi.yaml
//go:generate go run ./sdk
