package fetch

import "net/http"

// Unchecked sends a request without checkServer, so that only the dialer checks the address.
func (e *Endpoint) Unchecked(r *http.Request) (*http.Response, error) {
	return e.http.Transport.RoundTrip(r)
}
