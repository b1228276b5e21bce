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

// Link is a hostile link, and who stops it on each way in.
type Link struct {
	URL string
	// Caller is who stops it when a caller hands it in, Redirect when a short link of TikTok redirects to it, and Dialer
	// when nobody looks at it but the dialer of short links. Each is one of the words of links.txt.
	Caller, Redirect, Dialer string
}

// The words of links.txt.
const (
	Parse        = "parse"        // it is no web address
	Name         = "name"         // its host, or its port, is none that may be asked
	Path         = "path"         // the host is a platform's, but this is neither a video nor an account
	Address      = "address"      // the host is a platform's and stands for an address inside
	Unresolvable = "unresolvable" // the host is a platform's and does not exist
	Platform     = "platform"     // nobody: it leads to the platform itself, at its public address
)

// Links is the table, in which PORT is the port of the canary.
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
		require.False(t, seen[raw], "twice: %s", line)
		seen[raw] = true
		links = append(links, Link{URL: strings.ReplaceAll(raw, "PORT", canary.Port), Caller: words[0], Redirect: words[1], Dialer: words[2]})
	}
	require.GreaterOrEqual(t, len(links), 150)
	return links
}

// In is whether a host is one of these domains or a name below it.
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
