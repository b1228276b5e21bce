package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// eventReceiver imitates the HTTP server to which a caller's webhook points. It counts the events that it receives.
type eventReceiver struct {
	*httptest.Server

	mu       sync.Mutex
	verifier *standardwebhooks.Webhook
	times    map[uuid.UUID]int // how often each event was received
	refused  map[uuid.UUID]bool
	requests int
	faults   []string
	arrived  chan struct{} // receives one value for each request
}

// newEventReceiver starts a receiver that refuses about every third event once. It does not refuse an event twice, because the test would
// then wait too long: the server makes the third attempt a minute after the second, and the fourth attempt five minutes later.
func newEventReceiver(t *testing.T) *eventReceiver {
	t.Helper()
	r := &eventReceiver{times: map[uuid.UUID]int{}, refused: map[uuid.UUID]bool{}, arrived: make(chan struct{}, 100_000)}
	r.Server = httptest.NewServer(http.HandlerFunc(r.handle))
	t.Cleanup(r.Close)
	return r
}

func (r *eventReceiver) handle(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.arrived <- struct{}{} }()
	r.requests++
	var event struct{ ID uuid.UUID }
	switch {
	case err != nil:
		return // the sender was killed
	case r.verifier.Verify(body, request.Header) != nil:
		r.faults = append(r.faults, "a signature is wrong")
	case json.Unmarshal(body, &event) != nil || event.ID.String() != request.Header.Get("webhook-id"):
		r.faults = append(r.faults, "webhook-id is not the id of the event")
	}
	if r.requests%3 == 0 && !r.refused[event.ID] {
		r.refused[event.ID] = true
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	r.times[event.ID]++
}

// received returns true if each of the events was received at least once.
func (r *eventReceiver) received(events []uuid.UUID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(events, func(id uuid.UUID) bool { return r.times[id] == 0 })
}

// The test kills a server after it has stored an event, or while it sends the event. If a request got a response with the id of its event,
// this event must still arrive at least once, with the id and a valid signature.
func TestKill_killedServerLosesNoEventsForWebhooks(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	const rounds, perRound = 4, 20
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := startStack(t, engine)
			s.server.kill()
			s.collector.kill()
			s.env = append(s.env, "REELTALLY_WEBHOOK_ALLOW_PRIVATE=true", "REELTALLY_RATE_LIMITS=off")
			s.startServer(t)
			token := s.newAdmin(t)
			r := newEventReceiver(t)
			var hook struct {
				ID     uuid.UUID
				Secret string
			}
			call(t, http.MethodPost, s.base+"/webhooks", token, map[string]any{"url": r.URL}).decode(t, &hook)
			verifier, err := standardwebhooks.NewWebhook(hook.Secret)
			require.NoError(t, err)
			r.verifier = verifier

			var mu sync.Mutex
			var acknowledged []uuid.UUID
			for round := range rounds {
				var requests sync.WaitGroup
				for range perRound {
					requests.Go(func() {
						a, err := try(t, http.MethodPost, s.base+"/webhooks/"+hook.ID.String()+"/test", token, nil)
						var made struct {
							Event uuid.UUID `json:"event_id"`
						}
						if err == nil && a.status == http.StatusAccepted && json.Unmarshal(a.body, &made) == nil {
							mu.Lock()
							acknowledged = append(acknowledged, made.Event)
							mu.Unlock()
						}
					})
				}
				for range round * 3 { // in the first round, the test kills the server before it has sent an event
					<-r.arrived
				}
				s.server.kill()
				requests.Wait()
				s.startServer(t)
			}
			require.NotEmpty(t, acknowledged)
			await(t, 3*time.Minute, 100*time.Millisecond, func() string {
				if r.received(acknowledged) {
					return ""
				}
				return "not all events arrived; the deliveries are: " + string(call(t, http.MethodGet, s.base+"/webhooks/"+hook.ID.String()+"/deliveries", token, nil).body)
			})

			var feed struct {
				Data []struct{ ID uuid.UUID }
			}
			call(t, http.MethodGet, s.base+"/events?limit=1000", token, nil).decode(t, &feed)
			stored := map[uuid.UUID]bool{}
			for _, e := range feed.Data {
				stored[e.ID] = true
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			require.Empty(t, r.faults)
			repeated := 0
			for id, n := range r.times {
				require.True(t, stored[id], "an event was sent that is not stored")
				repeated += n - 1
			}
			t.Logf("%d events acknowledged, %d received in %d requests, %d received again", len(acknowledged), len(r.times), r.requests, repeated)
		})
	}
}

// newAdmin creates an organisation and returns a token with all scopes that belongs to this organisation.
func (s *stack) newAdmin(t *testing.T) string {
	t.Helper()
	var made struct {
		Organisation string `json:"organisation_id"`
		Token        string `json:"token"`
	}
	require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "org", "create", "--name", "Owner", "--json")), &made))
	require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "token", "create", "--org", made.Organisation, "--name", "Test", "--scopes", "read,write,admin", "--json")), &made))
	return made.Token
}
