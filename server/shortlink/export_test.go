package shortlink

import "net/http"

// SendUnchecked sends a request without the checks of Resolve. The dialer still checks the address.
func (r *Resolver) SendUnchecked(request *http.Request) (*http.Response, error) {
	return r.transport.RoundTrip(request)
}
