package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// receiver is an HTTP server that records the events that webhooks send to it.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	requests []received
	answer   func(w http.ResponseWriter, r *http.Request) // function that answers a request; nil for a response with status 200
}

// received is one of the requests that a receiver got.
type received struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(r.handleRequest))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) handleRequest(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.requests = append(r.requests, received{request.Header.Clone(), body})
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		answer(w, request)
	}
}

// answerWithStatus sets the status with which the receiver answers all later requests.
func (r *receiver) answerWithStatus(status int) {
	r.answerWithFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

func (r *receiver) answerWithFunc(answer func(http.ResponseWriter, *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// takeRequests returns the requests that arrived since the last call of takeRequests.
func (r *receiver) takeRequests() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.requests
	r.requests = nil
	return taken
}
