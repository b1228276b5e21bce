// Package fetch sends the HTTP requests of all sources and parses parts of their answers.
//
// The main types are [Client], [Endpoint], [Request] and [Response]. A Client holds the settings that all sources share. An Endpoint sends
// requests to one server only. Start reading at [Endpoint.Do].
//
// The other files parse parts of an answer: JSON (json.go), texts and times (text.go) and the class of an HTTP status (class.go). The
// parsers never panic. They return nil, "" or an error for a value that cannot be valid.
package fetch
