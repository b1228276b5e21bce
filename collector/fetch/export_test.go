package fetch

import "net/http"

// DoUnchecked sends a request without calling checkServer. Tests use it to check that the dialer also refuses other servers.
func (e *Endpoint) DoUnchecked(r *http.Request) (*http.Response, error) {
	return e.http.Transport.RoundTrip(r)
}
