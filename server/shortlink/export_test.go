package shortlink

import "net/http"

// SendUnchecked sends a request without the checks of Resolve. So the address of the request is checked only by the dialer.
func (r *Resolver) SendUnchecked(request *http.Request) (*http.Response, error) {
	return r.transport.RoundTrip(request)
}
