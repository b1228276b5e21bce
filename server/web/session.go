package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/reeltally/reeltally/store"
)

// sessionCookie is the name of the cookie with the secret of the session.
const sessionCookie = "reeltally_session"

// withSession returns a function that calls showPage for visitors with a valid session. It redirects all other visitors to the sign-in
// page.
func withSession(showPage func(*visit) error) func(*visit) error {
	return func(v *visit) error {
		cookie, err := v.r.Cookie(sessionCookie)
		if err != nil { // a visitor without a cookie is not signed in, which is not an error
			return v.askToSignIn()
		}
		v.session = cookie.Value
		v.id, err = v.Backend.Identify(v.r.Context(), v.session)
		if problem, ok := errors.AsType[*Problem](err); ok && problem.Status == http.StatusUnauthorized {
			v.setCookie("", -1)
			return v.askToSignIn()
		}
		if err != nil {
			return err
		}
		return showPage(v)
	}
}

// askToSignIn redirects the visitor to the sign-in page, which leads to the requested page. For a
// submitted form, it sends the sign-in page itself.
func (v *visit) askToSignIn() error {
	// Without HX-Redirect, htmx would show the sign-in page in place of the requested part of the current page.
	if v.isPartOfPage() {
		v.w.Header().Set("HX-Redirect", v.base+signInPath(v.refererPage()))
		v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		v.w.WriteHeader(http.StatusUnauthorized)
		return nil
	}
	if v.r.Method != http.MethodPost {
		v.redirectTo(signInPath(v.r.URL.RequestURI()))
		return nil
	}
	// After the sign-in, the visitor gets the page with the form.
	content := loginPage{Problem: &Problem{Detail: "Your session has ended. Nothing was changed. Sign in and try again."}, Next: cmp.Or(v.refererPage(), v.nearestPage(v.r.URL.EscapedPath()))}
	// After the sign-in, the form of the page Track contains the pasted links again.
	if v.r.URL.Path == "/track" {
		content.HiddenFields = v.readTrackingForm()
	}
	return v.renderPage(http.StatusUnauthorized, "login", "", "Sign in", content)
}

// signInPath returns the path and query of the sign-in page that leads to the page `next`, a path with or without a query. "" means the overview.
func signInPath(next string) string {
	if next == "" || next == "/" {
		return "/login"
	}
	return "/login?next=" + url.QueryEscape(next)
}

// isPartOfPage returns true if the script htmx sent the request. htmx requests a part of a page, and replaces this part in the browser.
func (v *visit) isPartOfPage() bool { return v.r.Header.Get("HX-Request") == "true" }

// readTrackingForm reads the submitted form of the page Track and returns its fields as hidden inputs for the sign-in page.
func (v *visit) readTrackingForm() []hiddenField {
	var kept []hiddenField
	for _, name := range []string{"links", "collection", "tracking_type"} {
		if value := v.r.PostFormValue(name); value != "" {
			kept = append(kept, hiddenField{name, value})
		}
	}
	return kept
}

// localPath returns its argument if this is a path on this server, with or without a query. Otherwise
// it returns "/", to prevent redirects to other sites.
func localPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") || strings.Contains(path, `\`) {
		return "/"
	}
	return u.RequestURI()
}

// setCookie sets the cookie of the session. maxAge is how long the browser keeps the cookie, in seconds; -1 deletes the cookie.
func (v *visit) setCookie(secret string, maxAge int) {
	http.SetCookie(v.w, &http.Cookie{ //nolint:gosec // Secure is false only if the dashboard has an http URL, over which browsers would not send a secure cookie
		Name: sessionCookie, Value: secret, Path: v.base + "/", MaxAge: maxAge, HttpOnly: true, Secure: v.Secure,
		SameSite: http.SameSiteLaxMode})
}

// startSession stores the secret of a new session in the browser's cookie and redirects the browser to path.
func (v *visit) startSession(session, path string) {
	v.setCookie(session, int(store.SessionLife.Seconds()))
	v.redirectTo(localPath(path))
}

// loginPage is the data for the template of the sign-in page.
type loginPage struct {
	Problem      *Problem           // says why the last attempt to sign in failed, or that the session has ended; nil on the first visit of the page
	Next         string             // path of the page to show after signing in; "" for the overview
	HiddenFields []hiddenField      // submitted fields of the page "Track", if the session had ended before the visitor submitted them
	Link         string             // secret of the login link; "" on the page that asks for a token
	Org          store.Organisation // organisation of the login link
}

// showLogin shows the page that asks for a token.
func showLogin(v *visit) error {
	return v.renderPage(http.StatusOK, "login", "", "Sign in", loginPage{Next: v.r.URL.Query().Get("next")})
}

// signIn creates a session for the token in the form.
func signIn(v *visit) error {
	session, err := v.Backend.SignIn(v.r.Context(), strings.TrimSpace(v.r.PostFormValue("token")))
	if err != nil {
		return v.refuseSignIn(err)
	}
	if links := v.r.PostFormValue("links"); links != "" {
		return v.showPastedLinks(session, links)
	}
	v.startSession(session, v.r.PostFormValue("next"))
	return nil
}

// showPastedLinks stores the secret of a new session in the browser's cookie. Then it shows the page
// Track with the pasted text in its form.
func (v *visit) showPastedLinks(session, text string) error {
	var err error
	if v.id, err = v.Backend.Identify(v.r.Context(), session); err != nil {
		return err
	}
	v.setCookie(session, int(store.SessionLife.Seconds()))
	v.session, v.notice = session, "You are signed in. Press Track to track the links."
	// The response is no redirect, because the text can be too long for a URL.
	return v.renderTrackingForm(trackPage{Text: text, Collection: v.r.PostFormValue("collection"), TrackingType: v.r.PostFormValue("tracking_type")})
}

// refuseSignIn shows the page that asks for a token, with the reason why the visitor could not sign in.
func (v *visit) refuseSignIn(err error) error {
	problem, ok := errors.AsType[*Problem](err)
	if !ok || problem.Status >= http.StatusInternalServerError {
		return err
	}
	v.setRetryAfter(problem)
	return v.renderPage(problem.Status, "login", "", "Sign in", loginPage{Problem: problem, Next: v.r.PostFormValue("next"), HiddenFields: v.readTrackingForm()})
}

// showLoginLink shows a button that signs the visitor in. Opening the login link must not use it up,
// because preview programs also open links.
func showLoginLink(v *visit) error {
	secret := v.r.PathValue("link")
	id, err := v.Backend.FindLoginLink(v.r.Context(), secret)
	if err != nil {
		return v.refuseSignIn(err)
	}
	return v.renderPage(http.StatusOK, "login", "", "Sign in", loginPage{Link: secret, Org: id.Organisation})
}

// useLoginLink creates a session for a login link, which then cannot be used again.
func useLoginLink(v *visit) error {
	session, err := v.Backend.UseLoginLink(v.r.Context(), v.r.PathValue("link"))
	if err != nil {
		return v.refuseSignIn(err)
	}
	v.startSession(session, "/")
	return nil
}

// signOut ends the session and shows the sign-in page.
func signOut(v *visit) error {
	if cookie, err := v.r.Cookie(sessionCookie); err == nil {
		if err := v.Backend.SignOut(v.r.Context(), cookie.Value); err != nil {
			return err
		}
	}
	v.setCookie("", -1)
	v.w.Header().Set("Clear-Site-Data", `"cache"`) // the browser deletes the responses to forms that keepInHistory lets it keep, and pages in its memory; over http, it ignores the header
	v.redirectTo("/login")
	return nil
}
