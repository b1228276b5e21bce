package fetch

import "net/http"

// DoUnchecked sends a request without calling checkServer. A test can then show that the dialer refuses other servers.
func (e *Endpoint) DoUnchecked(r *http.Request) (*http.Response, error) {
	return e.http.Transport.RoundTrip(r)
}
