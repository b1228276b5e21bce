package client

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// withoutRedirects returns an HTTP client that sends requests with next and follows no redirects. It copies next, so the caller's client does not change.
// It returns next itself if next is not an *http.Client.
func withoutRedirects(next HttpRequestDoer) HttpRequestDoer {
	original, ok := next.(*http.Client)
	if !ok {
		return next
	}
	own := *original
	// If package net/http follows a redirect with status 301, 302 or 303, it sends a GET request instead of a POST request, without the body. The response to
	// the GET request would look like a success.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// serverKey is a key for the context of a request. Its value is the address of the server, as a string.
type serverKey struct{}

// redirectMessage returns a message that names the address to which a response redirects. It returns "" if the response is no redirect. The message
// never contains the token.
func redirectMessage(r *http.Response) string {
	if r.StatusCode < 300 || r.StatusCode >= 400 || r.StatusCode == http.StatusNotModified || r.Request == nil {
		return ""
	}
	location, err := r.Location()
	if err != nil {
		return ""
	}
	target, requested := shownAddress(location), shownAddress(r.Request.URL)
	advice := ": is a proxy or a login page in between?"
	server, _ := r.Request.Context().Value(serverKey{}).(string)
	if base, err := url.Parse(server); err == nil {
		// A requested address is the address of the server and then the path of the operation, such as /videos. If the target of the redirect ends with
		// the same path, the rest of the target is the new address of the server.
		operation := strings.TrimPrefix(requested, strings.TrimSuffix(shownAddress(base), "/"))
		if address, found := strings.CutSuffix(target, operation); found && target != requested {
			target, advice = address, "; use this as the address"
		}
	}
	if token := strings.TrimPrefix(r.Request.Header.Get("Authorization"), "Bearer "); token != "" {
		target = strings.ReplaceAll(target, token, "…")
	}
	return fmt.Sprintf("the server redirects to %s%s", target, advice)
}

// shownAddress returns an address for messages. It leaves out the user, the query and the fragment, because they can contain secrets.
func shownAddress(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
