package server_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// guidePage contains the links and the ids of a page.
type guidePage struct {
	links []string
	ids   map[string]bool
}

// readGuide requests a page and returns its links and ids. It also checks that a guide has no
// attribute style or onclick.
func (a *app) readGuide(t *testing.T, path string) guidePage {
	t.Helper()
	r := a.send(t, http.MethodGet, path, nil).requireStatus(http.StatusOK)
	page := guidePage{ids: map[string]bool{}}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
		return page
	}
	root, err := html.Parse(strings.NewReader(string(r.body)))
	require.NoError(t, err)
	for node := range root.Descendants() {
		for _, attribute := range node.Attr {
			switch {
			case attribute.Key == "id":
				page.ids[attribute.Val] = true
			case node.Data == "a" && attribute.Key == "href":
				page.links = append(page.links, attribute.Val)
			}
			// The Content-Security-Policy of a guide blocks these attributes.
			if strings.HasPrefix(path, "/docs/guides/") {
				require.NotEqual(t, "style", attribute.Key, path)
				require.NotContains(t, attribute.Key, "onclick", path)
			}
		}
	}
	return page
}

// Requirements in docs/coverage.md: 14.6-03
func TestGuides_allLinksLeadToPagesThatExist(t *testing.T) {
	t.Parallel()
	const repository = "https://github.com/reeltally/reeltally/blob/main/"
	a := newApp(t, newSQLite(t))
	first := a.send(t, http.MethodGet, "/docs/guides", nil).requireStatus(http.StatusSeeOther)
	start, err := url.Parse(first.Header.Get("Location"))
	require.NoError(t, err)
	pages, waiting, files := map[string]guidePage{}, []*url.URL{start}, 0
	for len(waiting) > 0 {
		at := waiting[0]
		waiting = waiting[1:]
		page, known := pages[at.Path]
		if !known {
			page = a.readGuide(t, at.Path)
			pages[at.Path] = page
			if strings.HasPrefix(at.Path, "/docs/guides/") {
				for _, link := range page.links {
					target, err := at.Parse(link)
					require.NoError(t, err)
					if file, isFile := strings.CutPrefix(target.String(), repository); isFile {
						files++
						file, _, _ = strings.Cut(file, "#")
						_, err := os.Stat(filepath.Join("..", filepath.FromSlash(file)))
						require.NoError(t, err, "the guide %s links to %s, which is not a file of the repository", at.Path, link)
					} else if target.Host == "" && target.Path != "/" { // without a session, the dashboard redirects to the sign-in page
						waiting = append(waiting, target)
					}
				}
			}
		}
		if at.Fragment != "" {
			require.True(t, page.ids[at.Fragment], "a link leads to the section #%[2]s of the page %[1]s, but the page has no such section", at.Path, at.Fragment)
		}
	}
	require.Positive(t, files)
	for _, path := range []string{"dashboard", "quickstart", "concepts", "clients", "go", "typescript", "python", "command-line", "webhooks", "mcp", "proxies", "glossary"} {
		require.Contains(t, pages, "/docs/guides/"+path)
	}
	for _, path := range []string{"/docs/", "/errors", "/openapi.yaml"} {
		require.Contains(t, pages, path)
	}
	a.send(t, http.MethodGet, "/docs/guides/unknown", nil).requireStatus(http.StatusNotFound)
}

func TestGuides_haveTheAddressOfTheServerAndLeadBackToTheDashboard(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.AppURL = "https://tally.example.test/stats" })
	for _, path := range []string{"quickstart", "command-line"} {
		page := string(a.send(t, http.MethodGet, "/docs/guides/"+path, nil).requireStatus(http.StatusOK).body)
		require.Contains(t, page, "https://tally.example.test/stats")
		require.NotContains(t, page, ":8080")
		require.Contains(t, page, `<a href="/stats/">ReelTally</a>`)
		require.Contains(t, page, `<a href="/stats/docs/">Documentation of the API</a>`)
	}
}

func TestGuides_pagesOfTheDashboardLinkToTheirGuide(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	v := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
	require.Contains(t, string(v.visit("/").body), `<a href="/docs/guides/dashboard#how-to-read-the-numbers">`)
	guide := string(a.send(t, http.MethodGet, "/docs/guides/dashboard", nil).requireStatus(http.StatusOK).body)
	require.Contains(t, guide, `<h2 id="how-to-read-the-numbers">`)
	require.NotContains(t, guide, "<img", "a server does not have the pictures of the guide")
}
