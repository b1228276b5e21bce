package outboundtest

import (
	_ "embed" // the compiler needs this import to embed the file links.txt
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed links.txt
var linksFile string

// Link is a hostile link for tests. Each field except URL contains one of the constants below.
type Link struct {
	URL string
	// RequestCheck is the name of the check that must refuse an API request with the link.
	RequestCheck string
	// RedirectCheck is the name of the check that must refuse a redirect to URL. The redirect comes from a short link of TikTok.
	RedirectCheck string
	// DialCheck is the name of the check that must refuse a direct HTTP request to the link. The tests send this request with SendUnchecked
	// or DoUnchecked.
	DialCheck string
}

// These are the names of checks, with the reason why each check refuses a link. Platform is not the name of a
// check: it means that no check refuses the link.
const (
	Parse        = "parse"        // the text is not a web address
	Name         = "name"         // the host or the port of the URL is not allowed
	Path         = "path"         // the host belongs to a platform, but the path is neither a video nor an account
	Address      = "address"      // the host belongs to a platform and resolves to an internal address
	Unresolvable = "unresolvable" // the host is a subdomain of a platform, but DNS does not resolve it
	Platform     = "platform"     // no check refuses the link, because it leads to the public address of a platform
)

// Links returns the hostile links in links.txt. In each link, it replaces the word PORT by the listener's port, so that a link to this
// machine leads to the listener.
func Links(t *testing.T, listener *LocalListener) []Link {
	t.Helper()
	var links []Link
	seen := map[string]bool{}
	for line := range strings.Lines(linksFile) {
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
		links = append(links, Link{URL: strings.ReplaceAll(raw, "PORT", listener.Port), RequestCheck: words[0], RedirectCheck: words[1], DialCheck: words[2]})
	}
	require.GreaterOrEqual(t, len(links), 150)
	return links
}

// InDomains returns a function that returns true if a host is one of the domains or a subdomain of one of them. The host may be followed by
// a port.
func InDomains(domains ...string) func(host string) bool {
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
