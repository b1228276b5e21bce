//go:build race

package server_test

// raceFactor is the factor by which tests multiply limits of processor time and memory. The race detector needs more of both.
const raceFactor = 4
