package shortlink

import "net/http"

// Unchecked sends a request past every check but the dialer's.
func (r *Resolver) Unchecked(request *http.Request) (*http.Response, error) {
	return r.transport.RoundTrip(request)
}
