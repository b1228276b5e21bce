// Package mcp implements the Model Context Protocol at POST /mcp. It offers one tool for each operation of the contract (interface.md 6).
//
// New builds the handler. Start reading in mcp.go. The path of one call:
//
//  1. mcp.go and message.go: handler.ServeHTTP checks the size of the message and passes it to the SDK, which calls toolCaller.call.
//  2. arguments.go: tool.request puts the arguments into the HTTP request of the operation.
//  3. Options.Do sends this request through all middleware of package server, like a request of any client. Authentication, limits, scope,
//     validation and masking are done there, not in this package.
//  4. result.go: tool.result converts the response into a result, and encloses untrusted text in marks (untrusted.go).
//
// Untrusted text is text that other people wrote, such as the title of a video. The contract marks it with x-foreign-text.
//
// The tools are derived from the contract when the server starts: tool.go reads operations, schema.go converts schemas.
package mcp
