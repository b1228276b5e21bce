package queue_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Most properties here ask a database: 15 cases each, on two engines, unless the command line says otherwise.
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
	flag.Parse()
	goleak.VerifyTestMain(m)
}
