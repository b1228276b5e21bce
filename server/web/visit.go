package web

import (
	"bytes"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
)

// visit is one request for a page.
type visit struct {
	*Pages
	w          http.ResponseWriter
	r          *http.Request
	id         store.Identity // token and organisation of the session; zero on pages without a session
	session    string         // secret of the session
	notice     string         // message about the last action; if it is "", the query parameter "notice" selects a message
	noticeLink noticeLink     // link at the end of the notice; zero if it has none
	refused    *Problem       // error in the filter or the period of the page, shown above the content; nil if there is none
	back       string         // path and query for the link "Back" on an error page; if it is "", pageToReturnTo derives them from the request
}

// noticeLink is a link that the page shows directly after the text of its notice.
type noticeLink struct{ Text, Path string }

// newVisit returns a visit without a session.
func (p *Pages) newVisit(w http.ResponseWriter, r *http.Request) *visit {
	return &visit{Pages: p, w: w, r: r}
}

// page is the data for the template of a page.
type page struct {
	Title            string
	Section          string // name of the navigation item that is marked as the current one, such as "videos"
	Org              store.Organisation
	MadeUp           bool   // true if the numbers are made up by the sandbox
	Masked           bool   // true if the organisation's tier hides numbers
	Theme            string // colour scheme: "light", "dark", or "" for the setting of the visitor's system
	CanSeeOperations bool   // true if the visitor may see the page Operations
	// ReadOnly is true if the token of the session may not change anything. The page then has no buttons that change something.
	ReadOnly   bool
	Idle       bool   // true if no collector is running
	Notice     string // message about the result of the last action; "" if there was no action
	NoticeLink noticeLink
	Undo       *addition // what the last action added to a collection, which a button below the notice takes out again; nil if there is nothing to undo
	Refused    *Problem
	Search     string // text in the search field
	OwnSearch  bool   // true if the content has a search field for videos, so that the bar at the top has none
	IsTrack    bool   // true on the page Track; the bar at the top then has no link to it, because the link would empty the form
	Content    any
}

// renderPage sends a page, with the navigation around it. templateName is the name of the page's template, and templateData is the data that
// only this template needs.
func (v *visit) renderPage(status int, templateName, section, title string, templateData any) error {
	shown := page{Title: title, Section: section, Content: templateData, Search: v.r.URL.Query().Get("q"), OwnSearch: templateName == "videos", IsTrack: templateName == "track", Notice: v.notice, NoticeLink: v.noticeLink, Refused: v.refused,
		Org: v.id.Organisation, MadeUp: v.Backend.IsDataMadeUp(), Masked: v.hidesNumbers(), CanSeeOperations: v.maySeeOperations(), ReadOnly: v.isReadOnly(), Theme: v.theme()}
	if shown.Org.Name != "" {
		fetchable, err := v.Backend.FetchableLinks(v.r.Context())
		shown.Idle = err == nil && !fetchable.IsRunning() // Idle makes the page warn that no collector is running; it stays false if FetchableLinks fails
	}
	if shown.Notice == "" {
		text, added := parseAddition(v.r.URL.Query().Get("notice"))
		shown.Notice = noticeTexts[text]
		if added != nil && shown.Org.Name != "" && !shown.ReadOnly {
			added.Back = v.r.URL.EscapedPath() + "?" + withParameters(v.r.URL.Query(), "notice", "").Encode()
			shown.Undo = added
		}
	}
	if v.refused != nil && status == http.StatusOK {
		status = v.refused.Status
	}
	return v.executeTemplate(status, templateName, "layout", shown)
}

// itemID returns the id in the path of the page. The error is errNotFound if the path contains no valid id.
func (v *visit) itemID() (string, error) {
	id, err := uuid.Parse(v.r.PathValue("id"))
	if err != nil {
		return "", errNotFound
	}
	return id.String(), nil
}

// isReadOnly returns true if the visitor is signed in with a token that may not change anything.
func (v *visit) isReadOnly() bool {
	return v.id.Organisation.Name != "" && !v.id.Token.HasScope(store.ScopeWrite)
}

// hidesNumbers returns true if the organisation's tier hides numbers.
func (v *visit) hidesNumbers() bool {
	return v.id.Organisation.Tier != "" && v.Backend.HidesNumbers(v.id.Organisation.Tier)
}

// executeTemplate sends a page. The file templateFile, whose name is given without .html, must contain the template definitionName. If the template
// fails, executeTemplate sends nothing. An error of the connection is not returned.
func (v *visit) executeTemplate(status int, templateFile, definitionName string, data any) error {
	templates, err := v.templates()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := templates[templateFile].ExecuteTemplate(&out, definitionName, data); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	// If the write fails, the visitor has closed the connection, so an error page cannot be sent either.
	if _, err := out.WriteTo(v.w); err != nil {
		v.Logger.DebugContext(v.r.Context(), "cannot send the page", "page", v.r.Pattern, "error", err)
	}
	return nil
}

// keepInHistory lets the browser show this response again after Back and Forward. Otherwise, the response to a form is lost when the visitor leaves the
// page, because the browser would have to send the form a second time. The response must not contain a secret. After the visitor has signed out, the
// browser does not show the response again, because its cookies differ from those of the request.
func (v *visit) keepInHistory() {
	v.w.Header().Set("Cache-Control", "private, no-cache")
	v.w.Header().Add("Vary", "Cookie")
}

// redirectTo redirects the browser to pagePath, a path that can have a query.
func (v *visit) redirectTo(pagePath string) {
	v.w.Header().Set("Location", v.base+pagePath)
	v.w.WriteHeader(http.StatusSeeOther)
}

// A page that waits for numbers reloads itself after a time between minWait and maxWait. If the next fetch is late, this time is at most
// maxLateWait.
const (
	minWait     = 5 * time.Second
	maxLateWait = time.Minute
	maxWait     = time.Hour
)

// secondsToWait returns the number of seconds after which a waiting page reloads itself. nextFetch
// is the time of the next fetch, or nil if unknown.
func (v *visit) secondsToWait(nextFetch *time.Time) int {
	wait := minWait
	if nextFetch != nil {
		if wait = nextFetch.Sub(v.Now()); wait < 0 {
			// The fetch is late, for example because no collector is running. The page then waits a tenth of
			// the delay until it reloads itself, at most maxLateWait.
			wait = min(-wait/10, maxLateWait)
		}
	}
	return int(min(max(wait, minWait), maxWait).Seconds())
}

// refreshScheduled is the value of the query parameter "notice" after the visitor has requested new numbers of a video or account.
const refreshScheduled = "refresh-scheduled"

// shareSaved is the value of the query parameter "notice" after a share page was changed.
const shareSaved = "share-saved"

// sharePrivate is the value of the query parameter "notice" after a share page was changed that is private.
const sharePrivate = "share-private"

// awaitsNumbers returns true if the visitor has requested new numbers and they have not arrived yet. updatedAt is the time of the newest numbers. It
// is nil if there are none. If the new numbers have arrived, awaitsNumbers sets the notice that says so.
func (v *visit) awaitsNumbers(updatedAt *time.Time) bool {
	if v.r.URL.Query().Get("notice") != refreshScheduled || v.hidesNumbers() {
		return false
	}
	if updatedAt == nil || v.Now().Sub(*updatedAt) > time.Minute {
		return true
	}
	v.notice = "The numbers are new."
	return false
}

// noticeTexts maps each value of the query parameter "notice" to the message that the page shows.
var noticeTexts = map[string]string{ //nolint:gosec // the texts contain no credentials
	refreshScheduled:         "New numbers are being fetched. They appear here after a few seconds.",
	"refresh-not-due":        "The numbers are less than 4 hours old, so nothing was scheduled.",
	"tracked":                "Tracking was started. The numbers so far are kept.",
	"deleted":                "The collection was deleted. Its videos and accounts stay tracked.",
	"stopped":                "Tracking was stopped. The numbers so far are kept.",
	"added":                  "Added to the collection.",
	"added-before":           "Nothing was changed: it was added to the collection before.",
	"undone-videos":          "The addition was undone. A video that is also in the collection through its account or a hashtag stays in it.",
	"undone-accounts":        "The addition was undone. Videos that were added themselves or through a hashtag stay in the collection.",
	"undone-videos-partly":   "The addition was undone, except for videos that had already been taken out, or were added anew. A video that is also in the collection through its account or a hashtag stays in it.",
	"undone-accounts-partly": "The addition was undone, except for accounts that had already been taken out, or were added anew. Videos that were added themselves or through a hashtag stay in the collection.",
	"undone-none":            "Nothing was changed: what was added had already been taken out, or was added anew.",
	"accounts-added":         "The accounts are in the collection. The videos of those that are new in it count from today on.",
	"account-removed":        "The account was removed from the collection. Its videos stay tracked, and those that were added themselves or through a hashtag are still in the collection. If you add the account again, its videos count from that day on.",
	"created":                "The collection was created.",
	"collection-changed":     "The collection was changed.",
	shareSaved:               "The share page was changed.",
	sharePrivate:             "Saved. Nobody can open the page: it is private.",
	"share-closed":           "The share page was changed. It is closed, because its last day has passed.",
	"theme":                  "The colours were changed in this browser.",
	"token-revoked":          "The token was revoked.",
	"webhook-delete":         "The webhook was deleted.",
	"webhook-test":           "A test event will be sent within seconds. Reload the page to see the response.",
	"webhook-replay":         "The event will be sent again within seconds. Reload the page to see the response.",
	"webhook-enable":         "The webhook was enabled.",
	"webhook-disable":        "The webhook was disabled.",
}
