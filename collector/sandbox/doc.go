// Package sandbox simulates the platforms and vendors. An HTTP handler answers in their real formats, with made-up accounts and videos.
// [Sandbox] serves the requests, and [World] generates the data. README.md describes the paths, the generated data and the control calls.
package sandbox
