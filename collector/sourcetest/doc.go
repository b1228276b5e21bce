// Package sourcetest has the test suite that every source must pass. The test of a source fills in a [Harness] for videos or an
// [AccountHarness] for accounts, with answers in the real format of the platform. [Run] and [RunAccountTests] serve these answers over
// HTTP. They also serve broken answers, which any server can send. They check that each target has the right class and that each returned
// count is in the answer. They also check that no error or log contains a credential. Start reading at [Run].
package sourcetest
