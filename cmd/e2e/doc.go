// Package e2e tests the programs as they are deployed. The tests build the programs, start them as processes, use them over HTTP and kill
// them. Start reading at the type stack in harness_test.go. A stack is a running server with its database, its collector and a sandbox,
// which takes the place of the platforms.
package e2e
