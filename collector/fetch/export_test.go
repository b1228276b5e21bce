package fetch

import "net/http"

// Unchecked sends a request that only the dialer checks.
func (e *Endpoint) Unchecked(r *http.Request) (*http.Response, error) {
	return e.http.Transport.RoundTrip(r)
}
