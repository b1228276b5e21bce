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
	"embed"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed templates
var templateFiles embed.FS

// Paths are the paths of the pages. They use the syntax of the router echo.
var Paths = []string{"/", "/login", "/login/:link", "/setup/:link", "/logout", "/assets/*", "/track", "/track/progress", "/video", "/video/*", "/account", "/account/*",
	"/collection", "/collection/*", "/settings", "/settings/*", "/operations", "/compare", "/search", "/c/:hash", "/c/:hash/card.png", "/r/:hash", "/r/:hash/card.png", "/thumbnails/*", "/docs/guides", "/docs/guides/*"}

// policy is the Content-Security-Policy of the pages. Pages can load files only from this server.
// Inline scripts and inline styles are forbidden.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'"

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

// New returns the handler of all pages. It returns an error if o.AppURL is not a valid URL, or if an embedded file cannot be read.
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
	h.Set("Cache-Control", noStore)
}

// noStore is the value of the header Cache-Control with which a browser does not store a page.
const noStore = "no-store"

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

// routes returns the router of all pages. Most pages need a session: they redirect visitors without one to the sign-in page.
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
		return v.renderPage(http.StatusOK, "errors", wideSection, "Error codes", struct{ Errors, Faults []ErrorCode }{v.Backend.ErrorCodes(), v.Backend.FaultCodes()})
	})
	handle("GET /docs/guides", func(v *visit) error {
		v.redirectTo("/docs/guides/" + v.guides[0].Name)
		return nil
	})
	handle("GET /docs/guides/{name}", showGuide)
	handle("GET /c/{hash}", showShare)
	handle("POST /c/{hash}", submitSharePassword)
	handle("GET /c/{hash}/card.png", showCard)
	handle("GET /r/{hash}", showShare)
	handle("POST /r/{hash}", submitSharePassword)
	handle("GET /r/{hash}/card.png", showCard)
	handle("GET /thumbnails/{platform}/{id}/{signature}", showThumbnail)

	private("GET /{$}", showOverview)
	private("GET /track", showTrackingForm)
	private("POST /track", trackPastedLinks)
	private("POST /track/progress", showProgress)
	private("GET /video", showVideos)
	private("GET /video/{platform}/{id}", showVideo)
	private("POST /video/{platform}/{id}/{action}", changeVideo)
	private("GET /video/chosen", showChosenVideos)
	private("GET /video/chosen/remove", confirmRemoval)
	private("POST /video/chosen/{action}", changeChosenVideos)
	private("GET /compare", showComparison)
	private("GET /search", showSearch)
	private("GET /account", showAccounts)
	private("POST /account/chosen/collect", collectChosenAccounts)
	private("GET /account/{platform}/{id}", showAccount)
	private("POST /account/{platform}/{id}/{action}", changeAccount)
	private("GET /collection", showCollections)
	private("POST /collection", createCollection)
	private("GET /collection/{id}", showCollection)
	private("POST /collection/{id}", submitShareForm)
	private("POST /collection/{id}/{action}", changeCollection)
	private("GET /collection/report/{id}", showReport)
	private("POST /collection/report/{id}", submitReportShareForm)
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
