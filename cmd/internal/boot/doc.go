// Package boot has the code that all programs of ReelTally use. It reads the settings, writes the log, opens the database, serves HTTP, and
// stops the parts of a program in order.
//
// A program is a function that takes a context and a Process. Main runs the function and turns the returned error into an exit status.
// The function reads its settings with Parse, opens the store with Database.Open, and runs its services with RunAll.
// Start reading at Main in process.go.
package boot
