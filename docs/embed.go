package docs

import "embed"

// Guides are the documents for people who call the API. Servers show them below /docs/guides.
//
//go:embed quickstart.md concepts.md clients.md command-line.md contract.md mcp.md webhooks.md proxies.md glossary.md
var Guides embed.FS
