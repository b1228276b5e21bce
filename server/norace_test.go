//go:build !race

package server_test

// raceFactor multiplies the limits of CPU time and memory in tests. It is 1 in a build without the race detector.
const raceFactor = 1
