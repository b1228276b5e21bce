//go:build race

package server_test

// raceFactor is multiplied with the limits of processor time and memory in tests, because the race detector makes tests slower and larger.
const raceFactor = 4
