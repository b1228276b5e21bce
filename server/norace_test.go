//go:build !race

package server_test

// raceFactor is how much more processor time and memory a test may take because the race detector is on.
const raceFactor = 1
