package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/reeltally/reeltally/store"
)

// renderError sends the page for an error. It logs an error that is not a *Problem.
func (v *visit) renderError(err error) {
	v.w.Header().Set("Cache-Control", noStore)
	problem, ok := errors.AsType[*Problem](err)
	if !ok {
		v.Logger.ErrorContext(v.r.Context(), "a request for a page failed", "page", v.r.Pattern, "request_id", v.r.Header.Get("X-Request-Id"), "error", err)
		problem = &Problem{Status: http.StatusInternalServerError, Title: "Internal error",
			Detail: "The server failed. To find the cause, search its log for the request id " + v.r.Header.Get("X-Request-Id") + "."}
	}
	// The session is not valid, so the visitor must sign in again.
	if problem.Status == http.StatusUnauthorized {
		v.id = store.Identity{}
		if err := v.askToSignIn(); err != nil {
			v.Logger.ErrorContext(v.r.Context(), "cannot render the sign-in page", "error", err)
		}
		return
	}
	v.setRetryAfter(problem)
	if _, ok := v.shareKind(); ok {
		v.renderShareError(problem)
		return
	}
	// For a form, the API says which item was not found. The page of this item can still exist, for example that of a stopped video.
	if problem.Status == http.StatusNotFound && v.r.Method != http.MethodPost {
		problem = errNotFound
	}
	v.refused = nil // the page shows only the problem
	if err := v.renderPage(problem.Status, "problem", "", problem.Title, problemPage{problem, v.pageToReturnTo(problem)}); err != nil {
		v.Logger.ErrorContext(v.r.Context(), "cannot render the error page", "error", err)
	}
}

// problemPage is the data for the template of an error page.
type problemPage struct {
	*Problem
	Back string // path and query of the page that contained the form or link; "" if this page is unknown or is the overview
}

// pageToReturnTo returns the path and query to which an error page links back. It returns "" if this
// address is unknown or if the visitor has no session.
func (v *visit) pageToReturnTo(problem *Problem) string {
	if v.id.Organisation.Name == "" {
		return ""
	}
	requested := v.r.URL.RequestURI()
	back := cmp.Or(v.back, v.refererPage())
	switch {
	case problem == errNotFound: // the error page must not link to the requested path, because no page exists there
	case v.r.Method == http.MethodPost:
		back = cmp.Or(back, v.nearestPage(v.r.URL.EscapedPath()))
	case back == "" || back == requested: // the query may have caused the error, so the error page links to the same path without the query
		back = v.r.URL.EscapedPath()
	}
	// Every error page already has a link to the overview.
	if back == "/" || back == requested && v.r.Method == http.MethodGet {
		return ""
	}
	return back
}

// refererPage returns the path and query of the page in the header Referer, without v.base. It returns
// "" for the overview, and if the page is unknown.
func (v *visit) refererPage() string {
	u, err := url.Parse(v.r.Referer())
	if err == nil && u.Host != "" && (u.Host == v.r.Host || u.Host == v.host) {
		if from, ok := strings.CutPrefix(localPath(u.RequestURI()), v.base); ok && v.nearestPage(from) != "/" {
			return v.nearestPage(from)
		}
	}
	return ""
}

// nearestPage returns target if its page exists, and the nearest page above it otherwise. It returns
// "/" for the login and the setup.
func (v *visit) nearestPage(target string) string {
	// target can have a query.
	u, err := url.Parse(target)
	if err != nil || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "/login") || strings.HasPrefix(u.Path, "/setup") {
		return "/"
	}
	for u.Path != "/" {
		if _, pattern := v.mux.Handler(&http.Request{Method: http.MethodGet, URL: u}); pattern != fallbackPattern {
			return u.RequestURI()
		}
		u = &url.URL{Path: path.Dir(u.Path)}
	}
	return "/"
}

// setRetryAfter sets the header Retry-After if the problem says when the visitor can retry.
func (v *visit) setRetryAfter(problem *Problem) {
	if problem.RetryAfter > 0 {
		v.w.Header().Set("Retry-After", fmt.Sprint(int((problem.RetryAfter+time.Second-1)/time.Second)))
	}
}
