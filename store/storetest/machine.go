package storetest

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Machine describes this machine in one sentence for a report in docs/evidence: processor, memory, versions, date, and how many programs
// were waiting for a processor.
func Machine() string {
	var kilobytes float64
	_, _ = fmt.Sscan(findValueInFile("/proc/meminfo", "MemTotal"), &kilobytes) // without /proc, the sentence says 0 GiB
	load, _ := os.ReadFile("/proc/loadavg")
	average, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("The run ended on %s on a machine with %d cores (%s), %.0f GiB of memory, %s and %s. Its load average was %s at the end, including other programs.",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), cmp.Or(findValueInFile("/proc/cpuinfo", "model name"), "unknown processor"), kilobytes/(1<<20), runtime.GOOS,
		runtime.Version(), cmp.Or(average, "unknown"))
}

// findValueInFile returns the first value of a name in a file with lines such as "model name : X". It
// returns "" if the name is missing.
func findValueInFile(file, name string) string {
	f, err := os.Open(file) //nolint:gosec // a file of /proc
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, found := strings.Cut(lines.Text(), ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
