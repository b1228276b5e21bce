// Package mcp implements the Model Context Protocol (MCP) at POST /mcp. It offers one tool for each operation of the OpenAPI contract,
// except operations that need the scope "admin" or have x-no-tool.
//
// New builds the HTTP handler. Start reading in mcp.go. A tool call takes these steps:
//
//  1. Package server checks the size and the JSON of the message.
//  2. mcp.go: Handler.Serve checks the message and passes it to the SDK, which calls toolCaller.handleCall.
//  3. arguments.go: tool.newRequest puts the arguments into an HTTP request for the tool's operation.
//  4. Options.Do sends this request through all middleware of package server, like a request of any client. Authentication, limits, scope,
//     validation and masking happen in package server, not in this package.
//  5. result.go: tool.convertResponse converts the HTTP response into a tool result with the selected members (fields.go), says what the call
//     did (outcome.go), and names the members with untrusted text (untrusted.go).
//
// message.go checks messages before the SDK reads them. If the SDK refuses a call, message.go makes the response a JSON-RPC error.
//
// Untrusted text is text that other people wrote, such as the caption of a video. The contract marks it with x-foreign-text.
//
// The tools are derived from the contract when the server starts: tool.go reads operations, schema.go converts schemas,
// and text.go shortens descriptions. prompt.go has the prompt weekly_report.
package mcp
