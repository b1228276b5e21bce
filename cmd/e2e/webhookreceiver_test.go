package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// These are the faults that an eventReceiver imitates. Each text says what the receiver did.
const (
	faultRefused    = "the receiver answered with 503"
	faultRedirected = "the receiver answered with a redirect to another server on a loopback address"
	faultCut        = "the receiver closed the connection without a response"
	faultSilent     = "the receiver did not answer within ten seconds"
	faultLate       = "the receiver answered with 200 after two seconds"
)

// faultOfEvent returns the fault at the first attempt to send an event, or "" for no fault. n is
// the number of events that arrived earlier.
func faultOfEvent(n int) string {
	switch {
	case n%12 == 3:
		return faultRefused
	case n%25 == 7:
		return faultRedirected
	case n%25 == 12:
		return faultCut
	case n%100 == 40:
		return faultSilent
	case n%50 == 20:
		return faultLate
	}
	return ""
}

// eventReceiver imitates the HTTP server of a caller's webhooks. It often fails at the first
// attempt to send an event, and sometimes at the second.
type eventReceiver struct {
	*httptest.Server

	redirectTarget *httptest.Server            // the server to which the receiver redirects requests
	verifiers      []*standardwebhooks.Webhook // verifiers of signatures, one for each webhook

	mu         sync.Mutex
	attempts   map[uuid.UUID]int               // number of requests for each event, including requests that the receiver refused
	times      map[uuid.UUID]int               // number of times that each event was recorded
	events     map[eventKey]map[uuid.UUID]bool // ids of the received events, by the change that they report
	faults     map[string]int                  // number of requests that were answered with a fault; the key is the name of the fault
	requests   int
	redirected int      // number of requests that arrived at redirectTarget
	wrong      []string // descriptions of errors in the received requests
}

// newEventReceiver starts a receiver. The caller must set verifiers before the first event is sent.
func newEventReceiver(t *testing.T) *eventReceiver {
	t.Helper()
	r := &eventReceiver{attempts: map[uuid.UUID]int{}, times: map[uuid.UUID]int{}, events: map[eventKey]map[uuid.UUID]bool{}, faults: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.handleRequest))
	t.Cleanup(r.Close)
	r.redirectTarget = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.redirected++
	}))
	t.Cleanup(r.redirectTarget.Close)
	return r
}

func (r *eventReceiver) handleRequest(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the server that sent the request was killed, so the request is incomplete
	}
	switch r.recordEvent(request, body) {
	case faultRefused:
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case faultRedirected:
		http.Redirect(w, request, r.redirectTarget.URL, http.StatusTemporaryRedirect)
	case faultCut:
		panic(http.ErrAbortHandler)
	case faultSilent:
		<-request.Context().Done() // wait until the server that sends the event closes the connection
	case faultLate:
		select {
		case <-request.Context().Done():
		case <-time.After(2 * time.Second):
		}
	}
}

// recordEvent checks a request, and returns the fault to imitate, or "" for no fault. It does not
// record events that the receiver refuses or redirects.
func (r *eventReceiver) recordEvent(request *http.Request, body []byte) string {
	var event struct {
		ID   uuid.UUID
		Type string
		Data struct {
			Video struct {
				ID uuid.UUID `json:"ad_id"`
			}
		}
	}
	webhook, pathErr := strconv.Atoi(strings.TrimPrefix(request.URL.Path, "/"))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	switch {
	case pathErr != nil || r.verifiers[webhook].Verify(body, request.Header) != nil:
		r.wrong = append(r.wrong, "the signature is wrong: "+request.URL.Path)
	case json.Unmarshal(body, &event) != nil || event.ID.String() != request.Header.Get(standardwebhooks.HeaderWebhookID):
		r.wrong = append(r.wrong, "webhook-id is not the id of the event: "+string(body))
	}
	// The receiver never refuses a third attempt, because the test would then have to wait five minutes for the
	// fourth attempt.
	fault := ""
	switch attempt := r.attempts[event.ID]; {
	case attempt == 0:
		fault = faultOfEvent(len(r.attempts))
	case attempt == 1 && len(r.attempts)%50 == 49:
		fault = faultRefused
	}
	r.attempts[event.ID]++
	if fault != "" {
		r.faults[fault]++
	}
	if fault != faultRefused && fault != faultRedirected {
		r.times[event.ID]++
		key := eventKey{event.Type, event.Data.Video.ID}
		if r.events[key] == nil {
			r.events[key] = map[uuid.UUID]bool{}
		}
		r.events[key][event.ID] = true
	}
	return fault
}

// countEvents returns the number of different events that were received.
func (r *eventReceiver) countEvents() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.times)
}

// hasReceived returns true if an event about a change was received.
func (r *eventReceiver) hasReceived(key eventKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events[key]) > 0
}
