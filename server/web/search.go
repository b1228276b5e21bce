package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store/link"
)

// maxFound is the maximum length of each list of search results. The three lists contain videos, accounts and collections.
const maxFound = 6

// searchPage is the data for the template of the page of search results.
type searchPage struct {
	Text        string // text that the visitor searches for; "" before the first search
	Videos      []client.Video
	Accounts    []client.Account
	Collections []client.Collection
}

// IsEmpty returns true if nothing was found.
func (p searchPage) IsEmpty() bool {
	return len(p.Videos) == 0 && len(p.Accounts) == 0 && len(p.Collections) == 0
}

// showSearch shows the videos, accounts and collections that match the search. For the search dialog,
// the response has only these lists.
func showSearch(v *visit) error {
	content := searchPage{Text: strings.TrimSpace(v.r.URL.Query().Get("q"))}
	if content.Text != "" {
		var calls errgroup.Group // the calls run concurrently and fill different fields of content
		calls.Go(func() error { return v.searchVideos(&content) })
		calls.Go(func() (err error) {
			content.Accounts, err = v.findAccounts(content.Text)
			return err
		})
		calls.Go(func() error { return v.searchCollections(&content) })
		if err := calls.Wait(); err != nil {
			return err
		}
	}
	if v.isPartOfPage() {
		return v.executeTemplate(http.StatusOK, "search", "found", content)
	}
	return v.renderPage(http.StatusOK, "search", "", "Search", content)
}

// searchVideos reads the videos that match the search, those with the most views first.
func (v *visit) searchVideos(content *searchPage) error {
	query := url.Values{"order_by": {"latest_views"}, "limit": {"6"}}
	if isLink(content.Text) {
		query.Set("link", content.Text)
	} else {
		query.Set("q", content.Text)
	}
	var found client.VideoPage
	err := v.getFromAPI("/videos", query, &found)
	content.Videos = found.Data
	return ignoreRefusal(err)
}

// isLink returns true if the searched text is a link, with or without http:// or https://. If it has one of these, the link can belong to an
// unknown platform; the API then says why it refuses the link.
func isLink(text string) bool {
	_, err := link.Parse(text)
	return err == nil || strings.Contains(text, "://")
}

// AnyEnd is a wildcard at the end of a username in a request from a page to the API. Such a request selects all accounts whose usernames begin with the
// text before AnyEnd. No username contains AnyEnd. In requests of programs, AnyEnd has no meaning.
const AnyEnd = "*"

// usernamesWithBeginning returns the value of the API's query parameter "username" that selects the accounts whose usernames begin with the text. The
// API refuses a text without a letter of a username.
func usernamesWithBeginning(text string) string {
	beginning := strings.TrimRight(text, AnyEnd)
	if link.FoldUsername(beginning) == "" {
		return text
	}
	return beginning + AnyEnd
}

// findAccounts returns up to maxFound accounts whose usernames begin with the text, sorted by username. So the account with exactly this username is
// the first. Stopped accounts are left out. If the text cannot be the beginning of a username, findAccounts returns no accounts.
func (v *visit) findAccounts(text string) ([]client.Account, error) {
	query := url.Values{"username": {usernamesWithBeginning(text)}, "include_linked": {"true"}, "paginated": {"true"}, "limit": {strconv.Itoa(maxFound)},
		"order_by": {"username"}, "order_direction": {"asc"}}
	var found client.AccountPage
	err := v.getFromAPI("/accounts", query, &found)
	return found.Data, ignoreRefusal(err)
}

// searchCollections finds the collections whose names contain the searched text. It ignores differences between upper and lower case.
func (v *visit) searchCollections(content *searchPage) error {
	all, err := v.collections()
	for _, c := range all {
		if len(content.Collections) < maxFound && strings.Contains(strings.ToLower(c.Name), strings.ToLower(content.Text)) {
			content.Collections = append(content.Collections, c)
		}
	}
	return err
}

// ignoreRefusal returns nil if err says that the API refused the searched text, for example because it cannot be a username. It returns any
// other err unchanged.
func ignoreRefusal(err error) error {
	if problem, ok := err.(*Problem); ok && problem.Status == http.StatusBadRequest { //nolint:errorlint // getFromAPI returns a *Problem itself
		return nil
	}
	return err
}
