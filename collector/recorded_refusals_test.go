package collector_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// cause says why a source refuses a call: because of one target, because of the source, or for an unknown reason.
type cause string

const (
	ofTarget  cause = "the target is the cause"                      // a refusal with this cause never pauses the source
	ofSource  cause = "the key or the quota is the cause"            // the first refusal with this cause pauses the source or its budget
	undecided cause = "either the target or the source is the cause" // the answer does not show which of the two is the cause; the source is paused only after two targets were refused
)

// recordedRefusal is an error answer of a real API, taken from the documentation of the API or from the source code of its clients.
type recordedRefusal struct {
	name   string
	status int
	body   string
	cause  cause
}

const (
	youtubeError        = `{"error":{"code":403,"message":"no","errors":[{"message":"no","domain":"youtube","reason":"`
	graphError          = `{"error":{"type":"OAuthException","fbtrace_id":"A1","message":"`
	tiktokMessage       = `","message":"no","log_id":"20261122"}}`
	scrapeCreatorsError = `{"success":false,"error":"`
)

// recordedRefusals returns the error answers of each tested source. The keys are the names of the sources.
func recordedRefusals() map[string][]recordedRefusal {
	youtube := []recordedRefusal{
		{"forbidden", 403, youtubeError + `forbidden"}]}}`, undecided},
		{"an invalid filter parameter", 400, youtubeError + `invalidFilters"}]}}`, undecided},
		{"a refused key", 400, youtubeError + `badRequest"}],"details":[{"reason":"API_KEY_INVALID"}]}}`, ofSource},
		{"a key that is restricted to other IP addresses or websites", 403, youtubeError + `ipRefererBlocked"}]}}`, ofSource},
		{"an API that is not enabled", 403, youtubeError + `accessNotConfigured"}]}}`, ofSource},
		{"a spent quota", 403, youtubeError + `quotaExceeded"}]}}`, ofSource},
	}
	counts := slices.DeleteFunc(slices.Clone(youtube), func(r recordedRefusal) bool { return r.name == "forbidden" }) // batchGetStats returns "forbidden" if the project may not call this method
	display := []recordedRefusal{
		{"a refused parameter", 400, `{"data":{},"error":{"code":"invalid_params` + tiktokMessage, undecided},
		{"a missing scope", 401, `{"data":{},"error":{"code":"scope_not_authorized` + tiktokMessage, ofSource},
		{"too many calls in one minute", 429, `{"data":{},"error":{"code":"rate_limit_exceeded` + tiktokMessage, ofSource},
	}
	research := append(slices.Clone(display), recordedRefusal{"a spent daily quota", 429, `{"data":{},"error":{"code":"daily_quota_limit_exceeded` + tiktokMessage, ofSource})
	graph := []recordedRefusal{
		{"an expired token", 400, graphError + `Error validating access token","code":190,"error_subcode":463}}`, ofSource},
		{"too many calls by the app", 400, graphError + `(#4) Application request limit reached","code":4}}`, ofSource},
		{"a refused parameter", 400, graphError + `(#100) Invalid parameter","code":100}}`, undecided},
	}
	instagram := append(slices.Clone(graph),
		recordedRefusal{"an account that is not professional", 400, graphError + `Invalid user id","code":110,"error_subcode":2207013}}`, ofTarget},
		recordedRefusal{"a missing permission", 400, graphError + `(#10) Application does not have permission for this action","code":10}}`, undecided})
	facebook := append(slices.Clone(graph),
		recordedRefusal{"a page without Page Public Content Access, code 10", 400, graphError + `(#10) This endpoint requires the 'pages_read_engagement' permission or the 'Page Public Content Access' feature","code":10}}`, ofTarget},
		recordedRefusal{"a page without Page Public Content Access, code 100", 400, graphError + `(#100) Object does not exist, cannot be loaded due to missing permission or reviewable feature, or does not support this operation","code":100}}`, ofTarget},
		recordedRefusal{"a page that requires an app secret proof", 400, graphError + `(#100) Pages Public Content Access requires either app secret proof or an app token","code":100}}`, ofTarget},
		recordedRefusal{"a missing video", 400, graphError + `Unsupported get request. Object with ID '1' does not exist","code":100,"error_subcode":33}}`, ofTarget})
	ensemble := []recordedRefusal{
		{"a private user", 472, `{"detail":"User is private"}`, ofTarget},
		{"an age-restricted video", 471, `{"detail":"Post is age restricted"}`, ofTarget},
		{"a deleted video", 404, `{"detail":"Post not found"}`, ofTarget},
		{"an invalid link", 462, `{"detail":"Invalid post url"}`, ofTarget},
		{"status 403 without a reason", 403, `{"detail":"Forbidden"}`, undecided},
		{"an unknown token", 491, `{"detail":"Token not found"}`, ofSource},
		{"a spent daily budget", 495, `{"detail":"Maximum daily usage reached"}`, ofSource},
	}
	creators := []recordedRefusal{
		{"an age-restricted video", 403, scrapeCreatorsError + `forbidden","errorStatus":403,"message":"This video is age restricted"}`, ofTarget},
		{"a private video", 403, scrapeCreatorsError + `forbidden","errorStatus":403,"message":"This video is private"}`, ofTarget},
		{"a deleted video", 404, scrapeCreatorsError + `not_found","errorStatus":404,"message":"Video not found"}`, ofTarget},
		{"status 403 without a reason", 403, scrapeCreatorsError + `forbidden","errorStatus":403,"message":"Forbidden"}`, undecided},
		{"a server error", 500, scrapeCreatorsError + `internal_server_error","errorStatus":500,"message":"Something went wrong"}`, undecided},
		{"an invalid key", 401, `{"success":false,"message":"Invalid API key"}`, ofSource},
		{"a call without a key", 500, `{"success":false,"message":"apiKey is required"}`, ofSource},
		{"no credits", 402, `{"success":false,"message":"Looks like you're out of credits :("}`, ofSource},
		{"too many calls on one day", 429, `{"success":false,"message":"Exceeded daily rate limit."}`, ofSource},
	}
	apify := []recordedRefusal{
		{"an invalid input", 400, `{"error":{"type":"invalid-input","message":"Input is not valid"}}`, undecided},
		{"an invalid token", 401, `{"error":{"type":"token-not-valid","message":"Authentication token is not valid."}}`, ofSource},
		{"an actor that is not rented", 403, `{"error":{"type":"actor-is-not-rented","message":"You must rent a paid Actor"}}`, ofSource},
		{"more usage than the monthly limit allows", 403, `{"error":{"type":"platform-feature-disabled","message":"Monthly usage hard limit exceeded"}}`, ofSource},
		{"not enough credit", 402, `{"error":{"type":"not-enough-usage-to-run-paid-actor","message":"By launching this job you will exceed your remaining usage"}}`, ofSource},
	}
	return map[string][]recordedRefusal{
		"youtube": youtube, "youtube counts": counts, "tiktok display": display, "tiktok research": research, "instagram": instagram, "facebook": facebook,
		"ensembledata tiktok": ensemble, "ensembledata instagram": ensemble,
		"scrapecreators tiktok": creators, "scrapecreators instagram": creators, "scrapecreators facebook": creators,
		"apify tiktok": apify, "apify instagram": apify,
	}
}

// videoSet is a set of tracked videos of one platform. The platform refuses to answer about some of them, and answers about the others.
type videoSet struct {
	*hostileTest
	t         *testing.T
	org       *store.Org
	bad, good []string // bad: ids of the videos that the platform refuses; good: ids of the other videos
}

// newVideoSet tracks videos that the platform will refuse (bad), and other videos (good). The bad videos belong to different accounts if
// the tested source serves more than one account.
func (h *hostileTest) newVideoSet(t *testing.T, good, bad int) *videoSet {
	t.Helper()
	o, err := h.fast.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	c := &videoSet{hostileTest: h, t: t, org: h.fast.Org(o.ID)}
	var links []link.Link
	take := func(v sandbox.VideoTruth, ids *[]string) {
		l, err := link.Parse(h.trackedLink(v))
		require.NoError(t, err)
		links, *ids = append(links, l), append(*ids, v.ID)
	}
	if h.testedSource.ownVideos {
		for i, v := range h.normalVideos(h.sandbox.TikTokAccount()) {
			take(v, map[bool]*[]string{true: &c.bad, false: &c.good}[i < bad])
		}
	} else {
		for n := uint32(1); len(c.good) < good; n++ {
			found := h.normalVideos(h.sandbox.World().Handle(h.testedSource.platform, n))
			for i, v := range found[:min(len(found), good-len(c.good))] {
				if len(c.bad) < bad {
					if i == 0 {
						take(v, &c.bad)
					}
					continue
				}
				take(v, &c.good)
			}
		}
	}
	require.Len(t, c.bad, bad)
	require.NotEmpty(t, c.good)
	_, err = c.org.Track(t.Context(), store.TrackRequest{Links: links, Immediate: len(links)})
	require.NoError(t, err)
	if h.testedSource.countsOnly { // fetch the videos once, so that the next calls request only counts
		c.fetchDueTargets()
		h.db.Clock.Advance(25 * time.Hour)
		h.db.Exec(t, "UPDATE fetch_targets SET next_at = ?, details_at = ?", store.InstantOf(h.db.Clock.Now()), store.InstantOf(h.db.Clock.Now()))
	}
	return c
}

func (c *videoSet) fetchDueTargets() {
	c.t.Helper()
	for busy := true; busy; {
		var err error
		busy, err = c.collector.ClaimAndFetch(c.t.Context())
		require.NoError(c.t, err, c.logged)
	}
}

// refuseVideos makes the platform send an error answer to every request that contains one of the ids.
func (c *videoSet) refuseVideos(r recordedRefusal, ids ...string) {
	c.active.Store(&tampering{testedSource: c.testedSource, tamperedIDs: ids, tamper: respondWithStatus(r.status, r.body)})
}

// justFetchedIDs returns the ids of the videos that were fetched successfully at the current time of the test's clock.
func (c *videoSet) justFetchedIDs(ids []string) []string {
	c.t.Helper()
	now := storetest.Column[string](c.t, c.db, "SELECT external_id FROM fetch_targets WHERE kind = 'video' AND attempts = 0 AND fetched_at = ?", store.InstantOf(c.db.Clock.Now()))
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(now, id) })
}

// activePauses returns the class of each active pause. The keys are the names of the paused sources and budgets.
func (c *videoSet) activePauses() map[string]string {
	c.t.Helper()
	pauses, err := c.fast.Queue.Pauses(c.t.Context())
	require.NoError(c.t, err)
	out := map[string]string{}
	for name, p := range pauses {
		if p.BlockedUntil > store.InstantOf(c.db.Clock.Now()) {
			out[name] = p.Class
		}
	}
	return out
}

func (c *videoSet) endTest() {
	c.active.Store(nil)
	for _, table := range []string{"fetch_subscriptions", "fetch_targets", "source_pauses", "source_refusals", "quota_windows"} {
		c.db.Exec(c.t, "DELETE FROM "+table)
	}
	c.logged.reset()
}

// resetCallCount returns how many calls the platform has received since the last reset, and counts from 0 again. It also makes the platform stop
// refusing calls. Requests about runs of Apify do not count, because only their start is paid.
func (c *videoSet) resetCallCount() int {
	c.t.Helper()
	c.active.Store(nil)
	var calls map[string]struct {
		Calls    int            `json:"calls"`
		ByMethod map[string]int `json:"by_method"`
	}
	require.NoError(c.t, json.NewDecoder(c.callControlInterface(http.MethodGet, "/_control/calls", nil).Body).Decode(&calls))
	sum := 0
	for _, name := range []string{"youtube", "tiktok_display", "tiktok_research", "vendor"} {
		sum += calls[name].Calls - calls[name].ByMethod["actor-runs"] - calls[name].ByMethod["actor-runs/dataset/items"]
	}
	if sum == 0 { // the sandbox counts calls to the Graph API under the name of the platform
		sum = calls[string(c.testedSource.platform)].Calls
	}
	c.callControlInterface(http.MethodDelete, "/_control/calls", nil)
	return sum
}

// TestRecordedRefusals_ofASingleTargetDoNotPauseTheSource sends each source the error answers of its
// real API. The constants of the type "cause" say which answers must pause the source.
func TestRecordedRefusals_ofASingleTargetDoNotPauseTheSource(t *testing.T) {
	t.Parallel()
	for _, l := range testedSources() {
		refusals := recordedRefusals()[l.name]
		require.NotEmpty(t, refusals, l.name)
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			h := newHostileTest(t, "sqlite", l)
			for _, r := range refusals {
				t.Run(r.name, func(t *testing.T) {
					h.restartCollector(10 * time.Second)
					c := h.newVideoSet(t, 3, 2)
					defer c.endTest()
					switch r.cause {
					case ofSource:
						c.refuseVideos(r, append(c.bad, c.good...)...)
						c.fetchDueTargets()
						require.NotEmpty(t, c.activePauses(), h.logged)
						return
					case ofTarget:
						c.refuseVideos(r, c.bad...)
					case undecided:
						c.refuseVideos(r, c.bad[0])
					}
					c.fetchDueTargets()
					require.Empty(t, c.activePauses(), h.logged)
					require.Equal(t, c.good, c.justFetchedIDs(c.good), "%s", h.logged)
					require.NotContains(t, c.justFetchedIDs(c.bad), c.bad[0])
					if r.cause == ofTarget {
						return
					}
					c.refuseVideos(r, c.bad...)
					for range 4 {
						h.db.Clock.Advance(time.Hour)
						now := store.InstantOf(h.db.Clock.Now())
						h.db.Exec(t, "UPDATE fetch_targets SET next_at = ?", now.Add(48*time.Hour))
						h.db.Exec(t, "UPDATE fetch_targets SET next_at = ?, details_at = ? WHERE external_id IN (?, ?)", now, now, c.bad[0], c.bad[1])
						if c.fetchDueTargets(); len(c.activePauses()) > 0 {
							break
						}
					}
					require.NotEmpty(t, c.activePauses(), "two refused targets must pause the source: %s", h.logged)
				})
			}
		})
	}
}

// TestRecordedRefusals_doNotDelayTheFetchesOfOtherVideos fetches many good videos together with a few refused videos. The good
// videos must be fetched without delay. The refusals may cause only a few additional calls.
func TestRecordedRefusals_doNotDelayTheFetchesOfOtherVideos(t *testing.T) {
	t.Parallel()
	videos := 40
	if *allCombinations {
		videos = 200
	}
	for i, l := range testedSources() {
		engines := []string{storetest.Engines[i%len(storetest.Engines)]}
		if *allCombinations {
			engines = storetest.Engines
		}
		for _, engine := range engines {
			t.Run(l.name+" "+engine, func(t *testing.T) {
				t.Parallel()
				h := newHostileTest(t, engine, l)
				refusals := recordedRefusals()[l.name]
				r, bad := refusals[0], 1
				if i := slices.IndexFunc(refusals, func(r recordedRefusal) bool { return r.cause == ofTarget }); i >= 0 {
					r, bad = refusals[i], 3
				}
				calls := map[bool]int{}
				for _, refused := range []bool{false, true} {
					c := h.newVideoSet(t, videos, bad)
					c.resetCallCount()
					if refused {
						c.refuseVideos(r, c.bad...)
					}
					c.fetchDueTargets()
					require.Empty(t, c.activePauses(), h.logged)
					require.Equal(t, c.good, c.justFetchedIDs(c.good), "all videos that are not refused must be fetched without delay: %s", h.logged)
					calls[refused] = c.resetCallCount()
					c.endTest()
					h.restartCollector(10 * time.Second)
				}
				require.LessOrEqual(t, calls[true]-calls[false], bad*14, "the refused videos must be found with only a few calls: %v", calls)
			})
		}
	}
}
