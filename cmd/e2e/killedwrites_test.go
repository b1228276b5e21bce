package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// `make kills` runs the test with more kills and larger requests.
var (
	killsCount     = flag.Int("kills.count", 6, "number of times that each engine's server is killed during writes")
	killsLinks     = flag.Int("kills.links", 60, "number of links in one bulk request, at most 500")
	killsResponses = flag.Int("kills.answers", 10, "largest number of responses that the server sends before it is killed")
	killsTime      = flag.Duration("kills.time", time.Hour, "longest duration of the run on each engine; the run then ends, even if the server was killed fewer than kills.count times")
	killsOut       = flag.String("kills.out", "", "path of the page with the results of TestKill_killedServerLosesNoAcknowledgedWrites; if it is empty, there is no page")
)

const (
	killedWriters  = 4 // number of organisations that write at the same time
	blocksOfWriter = 2 // number of blocks of each organisation; a block is the links of one bulk request
)

// killedWriter sends the requests of one organisation, one at a time, until the server is killed. It
// records which changes the server acknowledged.
type killedWriter struct {
	token        string
	collection   string            // id of the collection to which the videos are added
	blocks       []*killedBlock    // after a cycle of requests for one block, the writer continues with the next block
	next         int               // index of the block that the next request changes
	names        int               // number of names that were used for new collections
	createdNames map[string]bool   // names of the collections whose creation was acknowledged
	unanswered   map[string]string // names of the collections whose creation got no response; the key is the Idempotency-Key of the request
}

// killedBlock has the links of one bulk request, and the state of their videos.
type killedBlock struct {
	links []string
	ids   []string // ids of the videos, in the order of the links; nil before the links were first tracked
	// step is the number of acknowledged steps of the current cycle. inDoubt is true if the request of the next step got no response.
	step    int
	inDoubt bool
}

// memberIDs returns the ids of the first 100 videos of the block, which the writer adds to its collection and later removes. A request
// accepts at most 100 ids.
func (b *killedBlock) memberIDs() []string { return b.ids[:min(100, len(b.ids))] }

// killedCounts has the results of the test on one database engine: the duration, and the numbers of kills, requests, changes and checks.
type killedCounts struct {
	engine                                  string
	kills                                   int
	requests                                atomic.Int64 // number of acknowledged requests
	writes                                  atomic.Int64 // number of links, members and collections that acknowledged requests changed
	tracked, stopped, added, taken, created atomic.Int64
	unanswered                              int // number of requests that a kill interrupted
	applied                                 int // number of interrupted requests whose changes were all stored; requests that create collections do not count
	checked                                 int // number of videos and collection members that the test checked after kills
	replayed                                int // number of responses to repeated requests with an Idempotency-Key
	duration                                time.Duration
}

// TestKill_killedServerLosesNoAcknowledgedWrites kills the server at random moments while four organisations change videos and collections.
// The server must keep all acknowledged changes: see compareVideos.
func TestKill_killedServerLosesNoAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	var mu sync.Mutex
	var results []*killedCounts
	t.Cleanup(func() {
		if *killsOut != "" && !t.Failed() {
			require.NoError(t, os.WriteFile(*killsOut, []byte(killedWritesPage(results, storetest.Machine())), 0o600))
		}
	})
	for _, engine := range storetest.StoreEngines() {
		t.Run(engine, func(t *testing.T) {
			if *killsOut == "" {
				t.Parallel() // if the run writes docs/evidence/killed-writes.md, it measures one engine at a time
			}
			k := &killedRun{stack: &stack{sandboxProcess: &sandboxProcess{}, env: []string{"REELTALLY_DATABASE_URL=" + storetest.CreateDatabase(t, engine), "REELTALLY_LISTEN=127.0.0.1:0",
				"REELTALLY_RATE_LIMITS=off"}}, counts: &killedCounts{engine: engine}}
			k.killRepeatedly(t)
			mu.Lock()
			results = append(results, k.counts)
			mu.Unlock()
		})
	}
}

// killedRun is the state of a test on one database engine. The test kills the server again and again.
type killedRun struct {
	*stack
	writers []*killedWriter
	counts  *killedCounts
}

// killRepeatedly kills the server as often as the flag -kills.count says, compares its data after each kill, and counts the results.
func (k *killedRun) killRepeatedly(t *testing.T) {
	t.Helper()
	start := time.Now()
	k.startServer(t)
	for i := range killedWriters {
		k.writers = append(k.writers, k.newWriter(t, i))
	}
	random := rand.New(rand.NewPCG(1, 1))
	for kill := 0; kill < *killsCount && time.Since(start) < *killsTime; kill++ {
		k.writeUntilKilled(t, 1+random.IntN(*killsResponses), time.Duration(random.IntN(30))*time.Millisecond)
		k.counts.kills++
		k.startServer(t)
		for _, w := range k.writers {
			k.compareVideos(t, w)
		}
		if kill%20 == 19 {
			printProgress(os.Stderr, "%s: %d kills, %d acknowledged writes, %d unanswered requests, after %s", t.Name(), k.counts.kills, k.counts.writes.Load(), k.counts.unanswered,
				time.Since(start).Round(time.Second))
		}
	}
	for _, w := range k.writers {
		k.repeatUnansweredCreations(t, w)
		k.compareCollections(t, w)
	}
	k.server.stop(t, sigterm)
	k.counts.duration = time.Since(start)
	t.Logf("%d kills, %d acknowledged requests with %d writes; %d unanswered requests, of which %d had their effect", k.counts.kills, k.counts.requests.Load(),
		k.counts.writes.Load(), k.counts.unanswered, k.counts.applied)
	require.Positive(t, k.counts.writes.Load())
}

// newWriter creates the writer with the index i. It also creates an organisation and a collection for this writer.
func (k *killedRun) newWriter(t *testing.T, i int) *killedWriter {
	t.Helper()
	w := &killedWriter{token: k.newOrganisation(t), createdNames: map[string]bool{}, unanswered: map[string]string{}}
	for n := range blocksOfWriter {
		b := &killedBlock{}
		for j := range *killsLinks {
			b.links = append(b.links, fmt.Sprintf("https://www.tiktok.com/@someone/video/7%03d%015d", i*blocksOfWriter+n, j))
		}
		w.blocks = append(w.blocks, b)
	}
	var made struct{ ID string }
	a := requireResponse(t, http.MethodPost, k.base+"/collections", w.token, map[string]any{"name": "Members"})
	require.Equal(t, http.StatusCreated, a.status, string(a.body))
	a.decode(t, &made)
	w.collection = made.ID
	w.createdNames["Members"] = true
	return w
}

// These are the steps of a cycle, in order. Each step is one request: createStep creates a collection, and the other steps change the videos of a
// block. After the last step, the next cycle begins.
const (
	trackStep = iota
	addStep
	removeStep
	stopStep
	createStep
	stepCount
)

// isTracked returns true if the videos of a block are tracked before the given step. They are tracked after trackStep and before stopStep.
func isTracked(step int) bool { return step > trackStep && step <= stopStep }

// isInCollection returns true if the videos of a block are in the writer's collection when the given step
// begins. Only addStep adds them, and the next step, removeStep, removes them.
func isInCollection(step int) bool { return step == removeStep }

// writeUntilKilled lets all writers send requests. It kills the server after the given number of
// responses and a delay, and waits until all writers have stopped.
func (k *killedRun) writeUntilKilled(t *testing.T, responses int, delay time.Duration) {
	t.Helper()
	answered := make(chan struct{}, 10_000)
	var writers sync.WaitGroup
	for _, w := range k.writers {
		writers.Go(func() {
			for k.sendNextStep(t, w) {
				answered <- struct{}{}
			}
		})
	}
	for range responses {
		<-answered
	}
	<-time.After(delay)
	k.server.kill()
	writers.Wait()
}

// sendNextStep sends the request of the next step of the writer's next block. It returns false if the request got no response.
func (k *killedRun) sendNextStep(t *testing.T, w *killedWriter) bool {
	b := w.blocks[w.next]
	var a response
	var err error
	var writes int64
	var counter *atomic.Int64
	switch b.step {
	case trackStep:
		counter, writes = &k.counts.tracked, int64(len(b.links))
		a, err = sendJSON(t, http.MethodPost, k.base+"/videos/bulk", w.token, map[string]any{"links": b.links})
	case addStep:
		counter, writes = &k.counts.added, int64(len(b.memberIDs()))
		a, err = sendJSON(t, http.MethodPost, k.base+"/collections/"+w.collection+"/videos", w.token, map[string]any{"video_ids": b.memberIDs()})
	case removeStep:
		counter, writes = &k.counts.taken, int64(len(b.memberIDs()))
		a, err = sendJSON(t, http.MethodDelete, k.base+"/collections/"+w.collection+"/videos", w.token, map[string]any{"video_ids": b.memberIDs()})
	case stopStep:
		counter, writes = &k.counts.stopped, int64(len(b.links))
		a, err = sendJSON(t, http.MethodDelete, k.base+"/videos/bulk", w.token, map[string]any{"ids": b.ids})
	case createStep:
		return k.createNextCollection(t, w, b)
	}
	if err != nil {
		b.inDoubt = true
		return false
	}
	k.checkResponse(t, b, a, writes)
	k.counts.requests.Add(1)
	if !b.inDoubt { // if b.inDoubt is true, an earlier attempt at this step may have made the writes, so they are not counted
		k.counts.writes.Add(writes)
		counter.Add(writes)
	}
	b.inDoubt = false
	b.step++
	return true
}

// checkResponse requires that the response reports a change of each video. Fewer changes are allowed if an
// earlier attempt at the step got no response.
func (k *killedRun) checkResponse(t *testing.T, b *killedBlock, a response, writes int64) {
	if b.inDoubt && a.status == http.StatusMultiStatus && b.step == stopStep {
		return // an earlier attempt got no response, but has stopped the tracking of the videos
	}
	expectTrue(t, a.status == http.StatusOK, "%d %s", a.status, a.body)
	var result struct {
		bulkResponse
		VideosAdded   int64 `json:"videos_added"`
		VideosRemoved int64 `json:"videos_removed"`
	}
	expectTrue(t, json.Unmarshal(a.body, &result) == nil, "%s", a.body)
	// The response must say that this step changed every video: if it changed fewer, the server has lost changes
	// of the previous step.
	switch b.step {
	case trackStep:
		ids := make([]string, len(result.Results))
		for i, r := range result.Results {
			ids[i] = r.VideoID
			expectTrue(t, r.Status == "tracked" || b.inDoubt, "%s: %s", r.URL, r.Status)
		}
		expectTrue(t, len(ids) == len(b.links), "%d results for %d links", len(ids), len(b.links))
		expectTrue(t, b.ids == nil || slices.Equal(b.ids, ids), "each link must keep its id")
		b.ids = ids
	case addStep:
		expectTrue(t, result.VideosAdded == writes || b.inDoubt, "%s", a.body)
	case removeStep:
		expectTrue(t, result.VideosRemoved == writes || b.inDoubt, "%s", a.body)
	case stopStep:
		expectTrue(t, int64(result.Summary.Succeeded) == writes, "%s", a.body)
	}
}

// expectTrue marks the test as failed if condition is false, but does not end the test. Unlike
// require.True, expectTrue may be called from any goroutine.
func expectTrue(t *testing.T, condition bool, format string, args ...any) {
	t.Helper()
	if !condition {
		t.Errorf(format, args...)
	}
}

// createNextCollection creates a collection. This is the last step of a writer's cycle. createNextCollection returns false if the server sent no
// response: then repeatUnansweredCreations sends the request again.
func (k *killedRun) createNextCollection(t *testing.T, w *killedWriter, b *killedBlock) bool {
	w.names++
	name, key := fmt.Sprintf("Run %d", w.names), uuid.NewString()
	b.step = trackStep
	w.next = (w.next + 1) % len(w.blocks)
	a, err := k.createCollection(t, w, name, key)
	if err != nil {
		w.unanswered[key] = name
		return false
	}
	expectTrue(t, a.status == http.StatusCreated, "%d %s", a.status, a.body)
	k.addCreatedName(w, name)
	return true
}

func (k *killedRun) createCollection(t *testing.T, w *killedWriter, name, key string) (response, error) {
	return sendJSONWithHeaders(t, http.MethodPost, k.base+"/collections", w.token, map[string]any{"name": name}, map[string]string{"Idempotency-Key": key})
}

// addCreatedName records and counts a collection whose creation was acknowledged.
func (k *killedRun) addCreatedName(w *killedWriter, name string) {
	w.createdNames[name] = true
	k.counts.requests.Add(1)
	k.counts.writes.Add(1)
	k.counts.created.Add(1)
}

// compareVideos requires that the server shows all acknowledged changes of a writer. An unanswered
// request must have had its whole effect or no effect.
func (k *killedRun) compareVideos(t *testing.T, w *killedWriter) {
	t.Helper()
	links, members := map[string]bool{}, map[string]bool{}
	var page struct{ Data []trackedVideo }
	k.requireGet(t, w, "/videos?limit=5000").decode(t, &page)
	for _, v := range page.Data {
		require.False(t, links[v.Link], "the server must list %s only once", v.Link)
		links[v.Link] = true
	}
	k.requireGet(t, w, "/collections/"+w.collection+"/videos?limit=5000").decode(t, &page)
	for _, v := range page.Data {
		require.False(t, members[v.ID], "the collection must have %s only once", v.ID)
		members[v.ID] = true
	}
	k.counts.checked += len(links) + len(members)
	least, most := 0, 0 // lowest and highest possible number of videos; they differ because requests without a response may have had an effect
	for _, b := range w.blocks {
		steps := []int{b.step}
		if b.inDoubt {
			k.counts.unanswered++
			steps = append(steps, b.step+1)
		}
		step, ok := b.matchingStep(steps, links, members)
		require.True(t, ok, "the server shows a block in an impossible state: %d acknowledged steps, unanswered request: %v, %d of %d videos tracked, %d of %d videos in the collection", b.step, b.inDoubt, countTextsInSet(b.links, links), len(b.links), countTextsInSet(b.ids, members), len(b.memberIDs()))
		if step > b.step {
			k.counts.applied++
		}
		for i, s := range []int{steps[0], steps[len(steps)-1]} {
			if isTracked(s) {
				*[]*int{&least, &most}[i] += len(b.links)
			}
		}
		for _, l := range b.links {
			delete(links, l)
		}
		for _, id := range b.ids {
			delete(members, id)
		}
	}
	require.Empty(t, links, "each listed video must have been sent by the writer")
	require.Empty(t, members, "each video of the collection must have been added by the writer")
	var statistics struct{ Total int }
	k.requireGet(t, w, "/statistics/videos").decode(t, &statistics)
	require.Contains(t, []int{least, most}, statistics.Total, "the server must count the tracked videos of the writer")
	k.compareCollections(t, w)
}

// matchingStep returns the first of the given steps whose starting state is the state that the server now shows. It returns false if no step
// matches. trackedLinks has the links of all tracked videos. collectionMembers has the ids of the videos in the collection.
func (b *killedBlock) matchingStep(steps []int, trackedLinks, collectionMembers map[string]bool) (int, bool) {
	for _, step := range steps {
		wantLinks, wantMembers := 0, 0
		if isTracked(step) {
			wantLinks = len(b.links)
		}
		if isInCollection(step) {
			wantMembers = len(b.memberIDs())
		}
		if countTextsInSet(b.links, trackedLinks) == wantLinks && countTextsInSet(b.ids, collectionMembers) == wantMembers {
			return step, true
		}
	}
	return 0, false
}

// countTextsInSet returns how many of the texts are in the set.
func countTextsInSet(texts []string, set map[string]bool) int {
	n := 0
	for _, text := range texts {
		if set[text] {
			n++
		}
	}
	return n
}

// compareCollections requires that each acknowledged collection exists once. A collection whose creation got no response may exist once. No
// other collection may exist.
func (k *killedRun) compareCollections(t *testing.T, w *killedWriter) {
	t.Helper()
	var list struct{ Data []struct{ Name string } }
	k.requireGet(t, w, "/collections?limit=5000").decode(t, &list)
	times := map[string]int{}
	for _, c := range list.Data {
		times[c.Name]++
	}
	for name := range w.createdNames {
		require.Equal(t, 1, times[name], name)
		delete(times, name)
	}
	for _, name := range w.unanswered {
		require.LessOrEqual(t, times[name], 1, name)
		delete(times, name)
	}
	require.Empty(t, times, "each listed collection must have been created by a request")
}

func (k *killedRun) requireGet(t *testing.T, w *killedWriter, path string) response {
	t.Helper()
	a := requireResponse(t, http.MethodGet, k.base+path, w.token, nil)
	require.Equal(t, http.StatusOK, a.status, string(a.body))
	return a
}

// repeatUnansweredCreations repeats each unanswered request to create a collection, with the same
// Idempotency-Key. Then the collection must exist exactly once: see compareCollections.
func (k *killedRun) repeatUnansweredCreations(t *testing.T, w *killedWriter) {
	t.Helper()
	for key, name := range w.unanswered {
		await(t, waitTimeout, time.Second, func() string {
			a, err := k.createCollection(t, w, name, key)
			require.NoError(t, err)
			if a.status == http.StatusCreated {
				return ""
			}
			// The server answers with 409 until the interrupted request counts as abandoned, after 15
			// seconds.
			require.Equal(t, http.StatusConflict, a.status, string(a.body))
			return "the interrupted request still locks its Idempotency-Key"
		})
		k.counts.unanswered++
		k.counts.replayed++
		k.addCreatedName(w, name)
		delete(w.unanswered, key)
	}
}
