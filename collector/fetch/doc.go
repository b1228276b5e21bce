// Package fetch makes the HTTP requests of all sources and reads their answers.
//
// The main types are [Client], which holds the limits and options that all sources share; [Endpoint], which sends requests to one
// server and to no other; and [Request] and [Response]. The other files read parts of an answer: JSON (json.go), texts and times
// (text.go) and the class of a status (class.go). They accept any input and refuse what cannot be right, but do not interpret
// it. Start reading at [Endpoint.Do].
package fetch
