// Package sourcetest has the test suite that every source must pass.
//
// A source's test describes the source in a [Harness] for videos or an [AccountHarness] for accounts, with answers in the real format of
// its platform. [Run] and [RunAccounts] serve these answers over HTTP. They add faults that any server can have. They check that each
// target has the right class, that no fact is invented, and that no credential is in an error or a log. Start reading at [Run].
package sourcetest
