// Package e2e tests the programs as they are deployed: built, started as processes, driven over HTTP, killed.
package e2e
