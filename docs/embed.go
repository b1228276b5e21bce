package docs

import "embed"

// Guides are the documents for people who use the dashboard or call the API. Servers show them below /docs/guides.
//
//go:embed dashboard.md quickstart.md concepts.md clients.md command-line.md mcp.md webhooks.md proxies.md import.md glossary.md
var Guides embed.FS
