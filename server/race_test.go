//go:build race

package server_test

// raceFactor multiplies the limits of CPU time and memory in tests, because the race detector needs more of both.
const raceFactor = 4
