// Package fetch sends the HTTP requests of all sources and parses parts of their answers.
//
// The main types are [Client], which holds the settings that all sources share; [Endpoint], which sends requests to one server only; and
// [Request] and [Response]. The other files parse parts of an answer: JSON (json.go), texts and times (text.go) and the class of an HTTP
// status (class.go). They accept any input without failing, and return nothing for a value that cannot be valid. Start reading at
// [Endpoint.Do].
package fetch
