//go:build !race

package server_test

// raceFactor is the factor by which tests multiply limits of processor time and memory. It is 1 in a build without the race detector.
const raceFactor = 1
