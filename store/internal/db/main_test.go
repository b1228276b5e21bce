package db_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Most property-based tests use a database and run on two engines. So each test checks 15 random cases by default. The flag -rapid.checks
	// overrides this number.
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
	flag.Parse()
	goleak.VerifyTestMain(m)
}
