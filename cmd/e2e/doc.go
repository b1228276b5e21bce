// Package e2e tests the programs as they are deployed. The tests build the programs, start them as processes, use them over HTTP and kill
// them. Start reading at stack in harness_test.go, which is a server with its database, sandbox and collector.
package e2e
