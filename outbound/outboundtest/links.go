package outboundtest

import (
	_ "embed" // the table
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed links.txt
var table string

// Link is a hostile link, and the check that must refuse it in each situation.
type Link struct {
	URL string
	// Caller is the check that refuses the link if a caller sends it. Redirect is the one if a short link of TikTok redirects to it, and
	// Dialer the one if only the dialer of short links checks it. Each is one of the constants below.
	Caller, Redirect, Dialer string
}

// The checks in links.txt.
const (
	Parse        = "parse"        // the text is not a web address
	Name         = "name"         // the host or the port is not allowed
	Path         = "path"         // the host belongs to a platform, but the path is neither a video nor an account
	Address      = "address"      // the host belongs to a platform and resolves to an internal address
	Unresolvable = "unresolvable" // the host belongs to a platform and does not exist
	Platform     = "platform"     // no check: the link leads to the platform at its public address
)

// Links returns the table of links.txt, with PORT replaced by the port of the canary.
func Links(t *testing.T, canary *Canary) []Link {
	t.Helper()
	var links []Link
	seen := map[string]bool{}
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.SplitN(line, " ", 4)
		require.Len(t, words, 4, line)
		raw, err := strconv.Unquote(words[3])
		require.NoError(t, err, line)
		require.False(t, seen[raw], "duplicate: %s", line)
		seen[raw] = true
		links = append(links, Link{URL: strings.ReplaceAll(raw, "PORT", canary.Port), Caller: words[0], Redirect: words[1], Dialer: words[2]})
	}
	require.GreaterOrEqual(t, len(links), 150)
	return links
}

// In returns a function that returns true if a host is one of the domains or below one of them.
func In(domains ...string) func(host string) bool {
	return func(host string) bool {
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		for _, d := range domains {
			if host == d || strings.HasSuffix(host, "."+d) {
				return true
			}
		}
		return false
	}
}
