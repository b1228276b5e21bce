package shortlink

import "net/http"

// Unchecked sends a request that only the dialer checks.
func (r *Resolver) Unchecked(request *http.Request) (*http.Response, error) {
	return r.transport.RoundTrip(request)
}
