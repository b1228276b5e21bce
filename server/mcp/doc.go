// Package mcp lets assistants use the interface: it speaks the Model Context Protocol and offers one tool for each operation
// of the contract (interface.md 6, POST /mcp).
//
// Tools are made from the contract when the server starts, and from nothing else. A call becomes the HTTP request of its
// operation, which takes the same way through the server as one from outside: identity, limits, scope, validation and masks
// are decided there and nowhere here.
package mcp
