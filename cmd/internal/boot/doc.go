// Package boot has what the programs of ReelTally share: settings, logging, opening the database, serving HTTP and stopping in order.
//
// A program is a function that takes a context and a Process. Main runs the function and turns its error into an exit status.
// The function reads its settings with Parse, opens the store with Database.Open, and runs its services with RunAll.
// Start reading at Main in process.go.
package boot
