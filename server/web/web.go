// Package web builds the pages of the dashboard on the server.
//
// New returns the HTTP handler of all pages. Start reading at Pages.routes. A page is built in three steps:
//
//  1. session.go: withSession finds the session of the browser, and with it the token and the organisation.
//  2. The page's function, in the file named after the page, requests data from the API with the rights of the token (call.go). The requests
//     pass through all middleware of package server. So tiers, masks, limits and the separation of organisations are those of the API.
//  3. visit.renderPage executes the template of the page. The templates are in the folder templates, their functions in format.go.
//
// The folder assets contains the stylesheet, the scripts and the published files of htmx and uPlot with their licences. All files are
// embedded in the program, so that pages load nothing from other hosts.
package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

//go:embed assets
var assetFiles embed.FS

//go:embed templates
var templateFiles embed.FS

// Paths are the paths of the pages. They use the syntax of the router echo.
var Paths = []string{"/", "/login", "/login/:link", "/setup/:link", "/logout", "/assets/*", "/track", "/track/progress", "/video", "/video/*", "/account", "/account/*",
	"/collection", "/collection/*", "/settings", "/settings/*", "/operations", "/compare", "/search", "/c/:hash", "/c/:hash/card.png", "/thumbnails/*", "/docs/guides", "/docs/guides/*"}

// policy is the Content-Security-Policy of the pages. Pages can load files only from this server.
// Inline scripts and inline styles are forbidden.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'"

// Backend is the interface through which pages use the server. If the visitor can do something about an error, the error is a *Problem.
type Backend interface {
	// Identify returns the token and the organisation of the session with this secret.
	Identify(ctx context.Context, session string) (store.Identity, error)
	// SignIn creates a session for a token and returns the session's secret.
	SignIn(ctx context.Context, token string) (session string, err error)
	// FindLoginLink returns the token and the organisation of a login link. The link can still be used afterwards.
	FindLoginLink(ctx context.Context, link string) (store.Identity, error)
	// UseLoginLink creates a session for a login link and returns the session's secret. The link cannot be used again.
	UseLoginLink(ctx context.Context, link string) (session string, err error)
	// CheckSetupLink returns a *Problem if the setup link cannot be used. The operator creates the first organisation with a setup link.
	CheckSetupLink(ctx context.Context, link string) error
	// SetUp uses a setup link to create the first organisation, its first token and a session. Afterwards, the link cannot be used again.
	SetUp(ctx context.Context, link, name string) (store.Setup, error)
	// SignOut ends the session with this secret.
	SignOut(ctx context.Context, session string) error
	// FindShare returns the collection whose share page has this hash. If the page is unknown,
	// private or expired, the error is a *Problem with status 404.
	FindShare(ctx context.Context, hash string) (store.Share, error)
	// RecordShareVisit stores that a visitor opens a share page now. It does not wait for the write.
	RecordShareVisit(ctx context.Context, share store.Share)
	// LastShareVisit returns when a visitor last opened a share page, or up to
	// store.ShareVisitInterval earlier. The result is nil for a page without visits and for another
	// organisation's page.
	LastShareVisit(ctx context.Context, id store.Identity, hash string) (*time.Time, error)
	// CheckSharePassword checks a share page's password and returns a pass, which is a signed
	// cookie value. The error is a *Problem after a wrong password or too many wrong passwords.
	CheckSharePassword(ctx context.Context, share store.Share, password string) (pass string, err error)
	// HasSharePass returns true if pass was returned by CheckSharePassword for this share page and is still valid. A new password of the page makes
	// every pass invalid.
	HasSharePass(share store.Share, pass string) bool
	// SignThumbnail returns the signature in the address of a video's thumbnail, a small preview picture. externalID is the id of the video on
	// its platform.
	SignThumbnail(p link.Platform, externalID string) string
	// Thumbnail returns the stored thumbnail of a video, a JPEG. If no thumbnail is stored, or if the signature is wrong, the error is a
	// *Problem with status 404.
	Thumbnail(ctx context.Context, p link.Platform, externalID, signature string) ([]byte, error)
	// Do returns the API's response to a request. The request has the rights of identity.Token.
	// visitorRequest is the request that the browser sent for the page.
	Do(identity store.Identity, visitorRequest *http.Request, method, target string, body io.Reader) (Response, error)
	// Operations returns the JSON of /status and the versions of the program and the API. visitorRequest is the
	// request that the browser sent for the page.
	Operations(visitorRequest *http.Request) (status []byte, version Version, err error)
	// FetchableLinks says which videos and accounts the running collectors can fetch, by platform and form of link.
	FetchableLinks(ctx context.Context) (queue.Fetchable, error)
	// TargetsWithStatus returns the videos and accounts that have the given fetch status, from all organisations. limit is the maximum
	// number of results.
	TargetsWithStatus(ctx context.Context, status store.FetchStatus, limit int) ([]queue.TargetStatus, error)
	// ErrorCodes returns all error codes of the API, sorted by status.
	ErrorCodes() []ErrorCode
	// HistoryDays returns the maximum age, in days, of the history points that a tier shows.
	HistoryDays(tier store.Tier) int
	// HidesNumbers returns true if a tier hides numbers.
	HidesNumbers(tier store.Tier) bool
	// IsDataMadeUp returns true if the numbers in the database are made up by the sandbox.
	IsDataMadeUp() bool
}

// ErrorCode is an error code of the API.
type ErrorCode struct {
	Code    string
	Status  int // HTTP status
	Title   string
	Meaning string // text that says when the API returns this error code
}

// Response is a response of the API.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Problem is an error message that a page shows to the visitor.
type Problem struct {
	Status     int
	Code       string
	Title      string
	Detail     string
	RetryAfter time.Duration // time after which the visitor can retry; 0 if it is not known
}

func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail) }

// Options are the settings of the pages. All fields are required.
type Options struct {
	Backend Backend
	// AppURL is the public URL of the dashboard, without a slash at the end. Links between pages begin with its path.
	AppURL string
	// Secure is true if AppURL is an https URL. Browsers then send the cookie of the session only over https.
	Secure bool
	Now    func() time.Time
	Logger *slog.Logger
}

// Pages is the handler of all pages. It is safe for concurrent use.
type Pages struct {
	Options
	base      string                                        // path of AppURL without a slash at the end; all links begin with it
	host      string                                        // host of AppURL, with its port
	templates func() (map[string]*template.Template, error) // returns the template of each page; the first call parses all templates
	assets    map[string]asset
	guides    []guide
	sameSite  *http.CrossOriginProtection // refuses POST requests that come from pages of other sites
	mux       *http.ServeMux
}

// New returns the handler of all pages.
func New(o Options) (*Pages, error) {
	app, err := url.Parse(o.AppURL)
	if err != nil {
		return nil, err
	}
	p := &Pages{Options: o, base: strings.TrimRight(app.EscapedPath(), "/"), host: app.Host, assets: map[string]asset{}}
	p.sameSite = http.NewCrossOriginProtection()
	if err := p.sameSite.AddTrustedOrigin(app.Scheme + "://" + app.Host); err != nil { // the public origin is also trusted, because a proxy may change the header Host
		return nil, err
	}
	if err := p.loadAssets(); err != nil {
		return nil, err
	}
	p.templates = sync.OnceValues(p.parseTemplates)
	if p.guides, err = readGuides(); err != nil {
		return nil, err
	}
	p.mux = p.routes()
	return p, nil
}

// setPageHeaders sets the headers of all pages.
func setPageHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin") // with the value no-referrer, browsers send "Origin: null" when they submit a form; if the dashboard has an http URL, sameSite refuses such requests
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// ServeUnknownAddress sends an error page to a browser that requests an address that does not exist on this server.
func (p *Pages) ServeUnknownAddress(w http.ResponseWriter, r *http.Request) {
	setPageHeaders(w.Header())
	v := p.newVisit(w, r)
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		if id, err := p.Backend.Identify(r.Context(), cookie.Value); err == nil { // without a session, the page has no navigation
			v.id = id
		}
	}
	problem := &Problem{Status: http.StatusNotFound, Title: "Not found", Detail: "There is no page at this address."}
	if err := v.renderPage(problem.Status, "problem", "", problem.Title, problemPage{Problem: problem}); err != nil {
		p.Logger.ErrorContext(r.Context(), "cannot render the error page", "error", err)
	}
}

// ServeHTTP answers a request for a page. It refuses POST requests from pages of other sites,
// because browsers send the session's cookie with such requests.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setPageHeaders(w.Header())
	if err := p.sameSite.Check(r); err != nil {
		p.newVisit(w, r).renderError(&Problem{Status: http.StatusForbidden, Title: "Request from another site",
			Detail: "Another web site caused this request, so it was refused. Open the page here and try again."})
		return
	}
	p.mux.ServeHTTP(w, r)
}

// routes returns the router of all pages.
func (p *Pages) routes() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, page func(*visit) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v := p.newVisit(w, r)
			if err := page(v); err != nil {
				v.renderError(err)
			}
		})
	}
	private := func(pattern string, page func(*visit) error) { handle(pattern, withSession(page)) }

	handle("GET /assets/{name}", serveAsset)
	handle("GET /login", showLogin)
	handle("POST /login", signIn)
	handle("GET /login/{link}", showLoginLink)
	handle("POST /login/{link}", useLoginLink)
	handle("POST /logout", signOut)
	handle("GET /setup/{link}", showSetup)
	handle("POST /setup/{link}", setUp)

	handle("GET /errors", func(v *visit) error {
		return v.renderPage(http.StatusOK, "errors", wideSection, "Error codes", v.Backend.ErrorCodes())
	})
	handle("GET /docs/guides", func(v *visit) error {
		v.redirectTo("/docs/guides/" + v.guides[0].Name)
		return nil
	})
	handle("GET /docs/guides/{name}", showGuide)
	handle("GET /c/{hash}", showShare)
	handle("POST /c/{hash}", submitSharePassword)
	handle("GET /c/{hash}/card.png", showCard)
	handle("GET /thumbnails/{platform}/{id}/{signature}", showThumbnail)

	private("GET /{$}", showOverview)
	private("GET /track", showTrackingForm)
	private("POST /track", trackPastedLinks)
	private("POST /track/progress", showProgress)
	private("GET /video", showVideos)
	private("GET /video/{platform}/{id}", showVideo)
	private("POST /video/{platform}/{id}/{action}", changeVideo)
	private("POST /video/chosen/{action}", changeChosenVideos)
	private("GET /compare", showComparison)
	private("GET /search", showSearch)
	private("GET /account", showAccounts)
	private("GET /account/{platform}/{id}", showAccount)
	private("POST /account/{platform}/{id}/{action}", changeAccount)
	private("GET /collection", showCollections)
	private("POST /collection", createCollection)
	private("GET /collection/{id}", showCollection)
	private("POST /collection/{id}/{action}", changeCollection)
	private("GET /collection/report/{id}", showReport)
	private("GET /operations", showOperations)
	private("GET /settings", showSettings)
	private("POST /settings/theme", setTheme)
	private("POST /settings/token", createToken)
	private("POST /settings/token/{id}/revoke", revokeToken)
	private("POST /settings/webhook", createWebhook)
	private("POST /settings/webhook/{id}/{action}", changeWebhook)
	handle(fallbackPattern, func(*visit) error { return errNotFound })
	return mux
}

// fallbackPattern is the pattern of p.mux that matches a request if no other pattern matches.
const fallbackPattern = "/"

// wideSection is the value of page.Section for public pages that are wide even for visitors without a session.
const wideSection = "wide"

// errNotFound is the error for a page that does not exist. An id of another organisation gives the
// same error as an unknown id.
var errNotFound = &Problem{Status: http.StatusNotFound, Title: "Not found", Detail: "This page does not exist, or it belongs to another organisation."}

// visit is one request for a page.
type visit struct {
	*Pages
	w       http.ResponseWriter
	r       *http.Request
	id      store.Identity // token and organisation of the session; zero on pages without a session
	session string         // secret of the session
	notice  string         // message about the last action; if it is "", the query parameter "notice" selects a message
	refused *Problem       // error in the filter or the period of the page, shown above the content; nil if there is none
	back    string         // path and query for the link "Back" on an error page; if it is "", pageToReturnTo derives them from the request
}

// newVisit returns a visit without a session.
func (p *Pages) newVisit(w http.ResponseWriter, r *http.Request) *visit {
	return &visit{Pages: p, w: w, r: r}
}

// page is the data for the template of a page.
type page struct {
	Title   string
	Section string // name of the navigation item that is marked as the current one, such as "videos"
	Org     store.Organisation
	MadeUp  bool   // true if the numbers are made up by the sandbox
	Masked  bool   // true if the organisation's tier hides numbers
	Theme   string // colour scheme: "light", "dark", or "" for the setting of the visitor's system
	Operate bool   // true if the visitor may see the page Operations
	// ReadOnly is true if the token of the session may not change anything. The page then has no buttons that change something.
	ReadOnly bool
	Idle     bool   // true if no collector is running
	Notice   string // message about the result of the last action; "" if there was no action
	Refused  *Problem
	Search   string // text in the search field
	Content  any
}

// renderPage sends a page, with the navigation around it. templateName is the name of the page's template, and templateData is the data that
// only this template needs.
func (v *visit) renderPage(status int, templateName, section, title string, templateData any) error {
	shown := page{Title: title, Section: section, Content: templateData, Search: v.r.URL.Query().Get("q"), Notice: v.notice, Refused: v.refused,
		Org: v.id.Organisation, MadeUp: v.Backend.IsDataMadeUp(), Masked: v.hidesNumbers(), Operate: v.maySeeOperations(), ReadOnly: v.isReadOnly(), Theme: v.theme()}
	if shown.Org.Name != "" {
		served, err := v.Backend.FetchableLinks(v.r.Context())
		shown.Idle = err == nil && !served.IsKnown() // Idle makes the page warn that no collector is running; it stays false if FetchableLinks fails
	}
	if shown.Notice == "" {
		shown.Notice = noticeTexts[v.r.URL.Query().Get("notice")]
	}
	if v.refused != nil && status == http.StatusOK {
		status = v.refused.Status
	}
	return v.executeTemplate(status, templateName, "layout", shown)
}

// isReadOnly returns true if the visitor is signed in with a token that may not change anything.
func (v *visit) isReadOnly() bool {
	return v.id.Organisation.Name != "" && !v.id.Token.HasScope(store.ScopeWrite)
}

// executeTemplate sends the output of a definition in a template file. templateFile is the file's
// name without .html. If the template fails, nothing is sent.
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
	_, err = out.WriteTo(v.w)
	return err
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

// refreshScheduled is the notice that new numbers of a video or account are being fetched.
const refreshScheduled = "refresh-scheduled"

// awaitsNumbers returns true if the visitor has requested a refresh and its numbers have not
// arrived. updatedAt is the time of the newest numbers, or nil.
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
	refreshScheduled:  "New numbers are being fetched. They appear here after a few seconds.",
	"refresh-not-due": "The numbers are less than 4 hours old, so nothing was scheduled.",
	"tracked":         "Tracking was started. The numbers so far are kept.",
	"deleted":         "The collection was deleted. Its videos and accounts stay tracked.",
	"stopped":         "Tracking was stopped. The numbers so far are kept.",
	"added":           "Added to the collection.",
	"chosen-stopped":  "Tracking of the chosen videos was stopped. The numbers so far are kept.",
	"removed":         "Removed from the collection.",
	"created":         "The collection was created.",
	"report-frozen":   "The report was saved.",
	"share-saved":     "The share page was changed.",
	"theme":           "The colours were changed in this browser.",
	"token-revoked":   "The token was revoked.",
	"webhook-delete":  "The webhook was deleted.",
	"webhook-test":    "A test event will be sent within seconds. Reload the page to see the answer.",
	"webhook-enable":  "The webhook was enabled.",
	"webhook-disable": "The webhook was disabled.",
}

// parseTemplates returns the templates of all pages by name. Each page has its own file, which uses
// the definitions of layout.html and parts.html.
func (p *Pages) parseTemplates() (map[string]*template.Template, error) {
	shared, err := template.New("").Funcs(p.templateFunctions()).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, err
	}
	templates := map[string]*template.Template{}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		own, err := shared.Clone()
		if err != nil {
			return nil, err
		}
		if templates[name], err = own.ParseFS(templateFiles, file); err != nil {
			return nil, err
		}
	}
	return templates, nil
}

// asset is an embedded file that the browser loads.
type asset struct {
	body        []byte
	etag        string
	contentType string
}

// contentTypes are the media types of the assets. Package mime is not used, because its results depend on the operating system.
var contentTypes = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}

func (p *Pages) loadAssets() error {
	files, err := fs.ReadDir(assetFiles, "assets")
	if err != nil {
		return err
	}
	for _, f := range files {
		body, err := fs.ReadFile(assetFiles, "assets/"+f.Name())
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		p.assets[f.Name()] = asset{body, hex.EncodeToString(sum[:8]), contentTypes[path.Ext(f.Name())]}
	}
	return nil
}

// assetPath returns the path of an asset for use in a page. The path contains the hash of the file, so that browsers can keep the file.
func (p *Pages) assetPath(name string) (string, error) {
	a, ok := p.assets[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %q", name)
	}
	return p.base + "/assets/" + name + "?" + a.etag, nil
}

// serveAsset sends an asset. Browsers keep it for a year if the address contains the hash of the file.
func serveAsset(v *visit) error {
	a, ok := v.assets[v.r.PathValue("name")]
	if !ok {
		return errNotFound
	}
	h := v.w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("ETag", `"`+a.etag+`"`)
	h.Set("Cache-Control", "no-cache")
	if v.r.URL.RawQuery == a.etag {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(v.w, v.r, "", time.Time{}, bytes.NewReader(a.body))
	return nil
}
