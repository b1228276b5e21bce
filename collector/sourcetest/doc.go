// Package sourcetest has the test suite that every source must pass.
//
// A source's test describes the source in a [Harness] for videos or an [AccountHarness] for accounts, with the answers that its platform
// really sends. [Run] and [RunAccounts] serve these answers over HTTP, add the faults that any server may have, and check the
// results: each target has the right class, no fact is invented, and no credential is in an error or a log. Start reading at [Run].
package sourcetest
