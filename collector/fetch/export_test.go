package fetch

import "net/http"

// Unchecked sends a request past every check but the dialer's.
func (e *Endpoint) Unchecked(r *http.Request) (*http.Response, error) {
	return e.http.Transport.RoundTrip(r)
}
