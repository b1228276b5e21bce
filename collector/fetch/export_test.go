package fetch

import "net/http"

// Unchecked sends a request without calling checkServer. A test can then show that the dialer refuses other servers.
func (e *Endpoint) Unchecked(r *http.Request) (*http.Response, error) {
	return e.http.Transport.RoundTrip(r)
}
