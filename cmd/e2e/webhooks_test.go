package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

var (
	webhooksOut    = flag.String("webhooks.out", "", "path of the page with the results of TestKill_killedProcessesLoseNoEventsForWebhooks; if it is empty, there is no page")
	webhooksOrgs   = flag.Int("webhooks.organisations", 2, "number of organisations, each of which has one webhook")
	webhooksVideos = flag.Int("webhooks.videos", 30, "number of videos that each organisation tracks; it later stops the tracking, so each video causes at least two events")
	webhooksKills  = flag.Int("webhooks.kills", 4, "number of killed processes")
)

// webhookBulk is the number of links in one request of a webhookRun.
const webhookBulk = 25

// webhookRun is a system whose servers and collector are killed while events are recorded and sent.
type webhookRun struct {
	*stack
	receiver *eventReceiver
	owners   []webhookOwner

	mu      sync.Mutex
	servers []*process
	bases   []string
	next    int // index of the server to which the next request is sent
	kills   map[string]int
}

// webhookOwner is an organisation with one webhook, to which all events of the organisation are sent.
type webhookOwner struct {
	token string
	hook  uuid.UUID
	links []string
}

// webhookResult is a row of the table in docs/evidence/webhooks.md.
type webhookResult struct {
	engine                   string
	videos, events, requests int
	repeated                 int            // number of requests whose event the receiver had already received
	kills                    map[string]int // number of kills, by the name of the process
	faults                   map[string]int // number of faults, by the name of the fault
	duration                 time.Duration
}

// TestKill_killedProcessesLoseNoEventsForWebhooks kills servers and the collector while events are sent. Each stored change must have
// exactly one event, which may arrive more than once.
//
// Requirements in docs/coverage.md: 14.5-06
func TestKill_killedProcessesLoseNoEventsForWebhooks(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	var mu sync.Mutex
	var results []webhookResult
	t.Cleanup(func() {
		if *webhooksOut != "" && !t.Failed() {
			require.NoError(t, os.WriteFile(*webhooksOut, []byte(webhookPage(results)), 0o600))
		}
	})
	for _, engine := range storetest.StoreEngines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			w := startWebhookRun(t, engine)
			w.killProcessesDuring(t, *webhooksKills/2, []string{"server", "collector"}, w.trackAll)
			w.awaitFetches(t)
			w.killProcessesDuring(t, *webhooksKills-*webhooksKills/2, []string{"server"}, w.stopAll)
			w.awaitDeliveries(t)
			result := w.compareEvents(t)
			result.engine, result.duration = engine, time.Since(start)
			mu.Lock()
			results = append(results, result)
			mu.Unlock()
			t.Logf("%+v", result)
		})
	}
}

// startWebhookRun starts the processes and creates organisations with a webhook each.
func startWebhookRun(t *testing.T, engine string) *webhookRun {
	t.Helper()
	servers := 2
	if engine == "sqlite" {
		// If several programs write to SQLite all the time, another program may be unable to start.
		servers = 1
	}
	w := &webhookRun{stack: &stack{sandboxProcess: startSandbox(t)}, servers: make([]*process, servers), bases: make([]string, servers), kills: map[string]int{}}
	w.env = append(slices.Clone(w.sandboxProcess.env), "REELTALLY_DATABASE_URL="+storetest.CreateDatabase(t, engine), "REELTALLY_LISTEN=127.0.0.1:0",
		"REELTALLY_WEBHOOK_ALLOW_PRIVATE=true", "REELTALLY_RATE_LIMITS=off")
	for i := range w.servers {
		w.startServerAt(t, i)
	}
	w.startCollector(t)
	w.receiver = newEventReceiver(t)
	videos := videoLinks(w.publicVideos(t, link.YouTube, *webhooksOrgs**webhooksVideos, 7))
	for i := range *webhooksOrgs {
		owner := webhookOwner{token: w.newAdminToken(t), links: videos[i**webhooksVideos : (i+1)**webhooksVideos]}
		var made struct {
			ID     uuid.UUID
			Secret string
		}
		requireResponse(t, http.MethodPost, w.bases[0]+"/webhooks", owner.token, map[string]any{"url": w.receiver.URL + "/" + strconv.Itoa(i)}).decode(t, &made)
		verifier, err := standardwebhooks.NewWebhook(made.Secret)
		require.NoError(t, err)
		owner.hook = made.ID
		w.owners = append(w.owners, owner)
		w.receiver.verifiers = append(w.receiver.verifiers, verifier)
	}
	return w
}

func (w *webhookRun) startServerAt(t *testing.T, i int) {
	t.Helper()
	p := startProgram(t, "server", w.env)
	base := loggedAddress(t, p, "serving")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[i], w.bases[i] = p, base
}

// killProcessesDuring kills and restarts the processes in `names` in turn, n times in total, while
// doWork runs.
func (w *webhookRun) killProcessesDuring(t *testing.T, n int, names []string, doWork func(t *testing.T)) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		doWork(t)
	}()
	first, events := w.receiver.countEvents(), *webhooksOrgs**webhooksVideos
	for kill := range n {
		// Wait for events, so that the kills are distributed over the whole time.
		await(t, 10*time.Minute, 5*time.Millisecond, func() string {
			if got, want := w.receiver.countEvents()-first, (kill+1)*events/(n+2); got < want {
				return fmt.Sprintf("the test kills the next process after %d events, but only %d have arrived", want, got)
			}
			return ""
		})
		switch name := names[kill%len(names)]; name {
		case "server":
			i := kill / len(names) % len(w.servers)
			w.servers[i].kill()
			w.startServerAt(t, i)
			w.kills[name]++
		case "collector":
			w.collector.kill()
			w.startCollector(t)
			w.kills[name]++
		}
		printProgress(os.Stderr, "%s: killed %v, %d events arrived", t.Name(), w.kills, w.receiver.countEvents())
	}
	<-done
}

// sendUntilAcknowledged sends a request to the servers in turn, until a server answers with one of the given statuses. Servers that were killed do not answer.
func (w *webhookRun) sendUntilAcknowledged(t *testing.T, method, path, token string, body any, statuses ...int) {
	t.Helper()
	await(t, 5*time.Minute, 50*time.Millisecond, func() string {
		w.mu.Lock()
		base := w.bases[w.next%len(w.bases)]
		w.next++
		w.mu.Unlock()
		a, err := sendJSON(t, method, base+path, token, body)
		if t.Context().Err() != nil {
			return "" // the test has already failed, so do not wait for the statuses
		}
		if err != nil || !slices.Contains(statuses, a.status) {
			return fmt.Sprintf("%s %s: %v %d %s", method, path, err, a.status, a.body)
		}
		return ""
	})
}

func (w *webhookRun) trackAll(t *testing.T) {
	t.Helper()
	w.forEachBatchOfLinks(func(owner webhookOwner, links []string) {
		w.sendUntilAcknowledged(t, http.MethodPost, "/videos/bulk", owner.token, map[string]any{"links": links}, http.StatusOK)
	})
}

func (w *webhookRun) stopAll(t *testing.T) {
	t.Helper()
	w.forEachBatchOfLinks(func(owner webhookOwner, links []string) {
		w.sendUntilAcknowledged(t, http.MethodDelete, "/videos/bulk", owner.token, map[string]any{"ids": links}, http.StatusOK)
	})
}

// forEachBatchOfLinks divides the links of each organisation into batches, and calls the function do for each batch. It handles all
// organisations at the same time.
func (w *webhookRun) forEachBatchOfLinks(do func(owner webhookOwner, links []string)) {
	var all sync.WaitGroup
	for _, owner := range w.owners {
		all.Go(func() {
			for links := range slices.Chunk(owner.links, webhookBulk) {
				do(owner, links)
			}
		})
	}
	all.Wait()
}

// listAllVideos returns the tracked and stopped videos of an organisation.
func (w *webhookRun) listAllVideos(t *testing.T, owner webhookOwner) []stoppedVideo {
	t.Helper()
	var page struct{ Data []stoppedVideo }
	requireResponse(t, http.MethodGet, w.bases[0]+"/videos?include_removed=true", owner.token, nil).decode(t, &page)
	return page.Data
}

// stoppedVideo is a video in a response of the API. It has only the fields that the test reads.
type stoppedVideo struct {
	ID      uuid.UUID `json:"ad_id"`
	Views   *int64    `json:"latest_views"`
	Removed bool
}

// awaitFetches waits until all videos have views.
func (w *webhookRun) awaitFetches(t *testing.T) {
	t.Helper()
	await(t, 10*time.Minute, time.Second, func() string {
		for _, owner := range w.owners {
			videos := w.listAllVideos(t, owner)
			if len(videos) != len(owner.links) || slices.ContainsFunc(videos, func(v stoppedVideo) bool { return v.Views == nil }) {
				return "not all videos were fetched"
			}
		}
		return ""
	})
}

// eventKey identifies a change of a video that must cause an event.
type eventKey struct {
	kind  string
	video uuid.UUID
}

// expectedChanges returns the changes for which events must arrive. Each video of the organisation has two such changes: its first fetch and the
// end of its tracking.
func (w *webhookRun) expectedChanges(t *testing.T, owner webhookOwner) []eventKey {
	t.Helper()
	videos := w.listAllVideos(t, owner)
	require.Len(t, videos, len(owner.links))
	var keys []eventKey
	for _, v := range videos {
		require.True(t, v.Removed)
		require.NotNil(t, v.Views)
		keys = append(keys, eventKey{"video.metrics.updated", v.ID}, eventKey{"video.removed", v.ID})
	}
	return keys
}

// awaitDeliveries waits until an event about each expected change has arrived, and until each delivery has succeeded.
func (w *webhookRun) awaitDeliveries(t *testing.T) {
	t.Helper()
	for _, owner := range w.owners {
		var missing []eventKey
		await(t, 30*time.Minute, time.Second, func() string {
			if missing == nil {
				missing = w.expectedChanges(t, owner)
			}
			missing = slices.DeleteFunc(missing, w.receiver.hasReceived)
			if len(missing) > 0 {
				return fmt.Sprintf("%d changes have no event; the first of these changes is %v", len(missing), missing[0])
			}
			return ""
		})
	}
	for _, owner := range w.owners {
		await(t, 30*time.Minute, time.Second, func() string {
			var page struct {
				Data []struct {
					Status string
					Event  uuid.UUID `json:"event_id"`
				}
			}
			requireResponse(t, http.MethodGet, w.bases[0]+"/webhooks/"+owner.hook.String()+"/deliveries?limit=5000", owner.token, nil).decode(t, &page)
			require.NotEmpty(t, page.Data)
			for _, d := range page.Data {
				if d.Status != "delivered" {
					return fmt.Sprintf("the delivery of event %s is %s", d.Event, d.Status)
				}
			}
			return ""
		})
	}
}

// compareEvents compares the received events with the changes and with the event feeds, and returns a row of the table in
// docs/evidence/webhooks.md.
func (w *webhookRun) compareEvents(t *testing.T) webhookResult {
	t.Helper()
	r := w.receiver
	feed := map[uuid.UUID]bool{}
	for _, owner := range w.owners {
		cursor := ""
		for more := true; more; {
			var page struct {
				Data       []struct{ ID uuid.UUID }
				HasMore    bool   `json:"has_more"`
				NextCursor string `json:"next_cursor"`
			}
			requireResponse(t, http.MethodGet, w.bases[0]+"/events?limit=1000"+cursor, owner.token, nil).decode(t, &page)
			for _, e := range page.Data {
				require.False(t, feed[e.ID], "the event feed must have each event only once")
				feed[e.ID] = true
			}
			cursor, more = "&cursor="+url.QueryEscape(page.NextCursor), page.HasMore
		}
	}
	var changes []eventKey
	for _, owner := range w.owners {
		changes = append(changes, w.expectedChanges(t, owner)...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Empty(t, r.wrong)
	require.Zero(t, r.redirected, "the server must not follow redirects")
	require.Len(t, r.times, len(feed), "the event feeds must have the same events as the receiver")
	repeated := 0
	for id, n := range r.times {
		require.True(t, feed[id], "each event that the receiver got must be in an event feed")
		repeated += n - 1
	}
	for _, key := range changes {
		require.Len(t, r.events[key], 1, "the change %v must have one event id, however often the event was delivered", key)
	}
	return webhookResult{videos: len(changes) / 2, events: len(r.times), requests: r.requests, repeated: repeated, kills: w.kills, faults: r.faults}
}

// newAdminToken creates an organisation and returns a token of this organisation. The token has all scopes.
func (s *stack) newAdminToken(t *testing.T) string {
	t.Helper()
	var made struct {
		Organisation string `json:"organisation_id"`
		Token        string `json:"token"`
	}
	require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "org", "create", "--name", "Owner", "--json")), &made))
	require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "token", "create", "--org", made.Organisation, "--name", "Test", "--scopes", "read,write,admin", "--json")), &made))
	return made.Token
}
