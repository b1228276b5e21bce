package collector_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/facebook"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/instagram"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/tiktok"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/collector/youtube"
	"github.com/reeltally/reeltally/outbound/outboundtest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// standardHosts are the hosts that the sources call if no base URL is configured.
var standardHosts = []string{"youtube.googleapis.com", "open.tiktokapis.com", "graph.facebook.com", "api.apify.com", "ensembledata.com", "api.scrapecreators.com"}

// compromisedHosts answers for hosts that an attacker controls. It answers with a redirect to a
// hostile link, or puts this link into the sandbox's answers.
type compromisedHosts struct {
	sandbox http.Handler

	mu           sync.Mutex
	link         string
	redirect     int            // status code of the redirect; 0 if the answer is not a redirect
	calls        map[string]int // maps a host to the number of received calls
	linkReturned map[string]int // maps a host to the number of received calls whose query contains the hostile link
	cached       map[string]cachedAnswer
}

func (h *compromisedHosts) setHostileLink(link string, redirect int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.link, h.redirect = link, redirect
}

func (h *compromisedHosts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	hostileLink, redirect := h.link, h.redirect
	h.calls[r.Host]++
	if slices.ContainsFunc(slices.Collect(allValues(r.URL.Query())), func(v string) bool { return strings.Contains(v, hostileLink) }) {
		h.linkReturned[r.Host]++
	}
	h.mu.Unlock()
	w.Header().Set("Link", "<"+hostileLink+`>; rel="next"`)
	w.Header().Set("Content-Location", hostileLink)
	w.Header().Set("Refresh", "0; url="+hostileLink)
	w.Header().Set("Alt-Svc", `h2="`+hostileLink+`"`)
	if redirect != 0 {
		w.Header().Set("Location", hostileLink)
		w.WriteHeader(redirect)
		return
	}
	answer := h.sandboxAnswer(r, hostileLink)
	inJSON, _ := json.Marshal(hostileLink)
	w.WriteHeader(answer.status)
	_, _ = w.Write(bytes.ReplaceAll(answer.body, []byte(`"`+linkPlaceholder+`"`), inJSON))
}

// linkPlaceholder is the text in cached answers that is replaced by the hostile link.
const linkPlaceholder = "HOSTILE"

type cachedAnswer struct {
	status int
	body   []byte
}

// sandboxAnswer returns the sandbox's answer with linkPlaceholder in place of every URL and page token. It caches the answers, because the clock
// of the sandbox does not move.
func (h *compromisedHosts) sandboxAnswer(r *http.Request, hostileLink string) cachedAnswer {
	requestBody, _ := io.ReadAll(r.Body)
	key := r.Method + " " + r.Host + strings.ReplaceAll(r.URL.String(), url.QueryEscape(hostileLink), linkPlaceholder) + " " + string(requestBody)
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, ok := h.cached[key]; ok {
		return known
	}
	prefix := map[string]string{"youtube.googleapis.com": "/youtube", "open.tiktokapis.com": "/tiktok", "graph.facebook.com": "/instagram"}[r.Host]
	switch {
	case r.Host == "graph.facebook.com" && r.URL.Query().Get("access_token") == sandbox.FacebookToken:
		prefix = "/facebook"
	case prefix == "":
		prefix = "/vendor"
		r.URL.Path = strings.TrimPrefix(r.URL.Path, map[string]string{"api.apify.com": "/v2", "ensembledata.com": "/apis"}[r.Host])
	}
	r.URL.Path, r.URL.RawPath = prefix+r.URL.Path, ""
	r.Header.Del("Accept-Encoding")
	r.Body = io.NopCloser(bytes.NewReader(requestBody))
	correct := httptest.NewRecorder()
	h.sandbox.ServeHTTP(correct, r)
	answer := cachedAnswer{correct.Code, correct.Body.Bytes()}
	decoder := json.NewDecoder(correct.Body)
	decoder.UseNumber()
	var decoded any
	if decoder.Decode(&decoded) == nil {
		answer.body, _ = json.Marshal(insertPlaceholders("", decoded))
	}
	h.cached[key] = answer
	return answer
}

func allValues(q url.Values) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, values := range q {
			for _, v := range values {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// insertPlaceholders returns the JSON value v with linkPlaceholder in place of each URL and page token. `key`
// is the name of the member that contains v.
func insertPlaceholders(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		isPage := false
		for k, inner := range v {
			_, isList := inner.([]any)
			isPage = isPage || isList
			out[k] = insertPlaceholders(k, inner)
		}
		if isPage {
			for k, token := range pageTokens() {
				if _, isNumber := out[k].(json.Number); !isNumber {
					out[k] = token
				}
			}
		}
		return out
	case []any:
		for i := range v {
			v[i] = insertPlaceholders(key, v[i])
		}
	case string:
		key = strings.ToLower(key)
		if strings.HasPrefix(v, "http") || slices.ContainsFunc([]string{"cursor", "next", "after", "pagetoken", "url", "link", "href"}, func(part string) bool { return strings.Contains(key, part) }) {
			return linkPlaceholder
		}
	}
	return v
}

// pageTokens returns the JSON members with which platforms and vendors say that a list has another page.
func pageTokens() map[string]any {
	return map[string]any{
		"nextPageToken": linkPlaceholder, "nextCursor": linkPlaceholder, "cursor": linkPlaceholder, "has_more": true, "more_available": true, "next_max_id": linkPlaceholder, "next_page_id": linkPlaceholder,
		"paging": map[string]any{"cursors": map[string]any{"after": linkPlaceholder}, "next": linkPlaceholder},
	}
}

// defaultSources returns all sources, configured to call the standard hosts of the platforms and vendors.
func (w *testSystem) defaultSources(client *fetch.Client) []source.Source {
	w.t.Helper()
	now := w.db.Clock.Now
	yt, err := youtube.New(youtube.Options{APIKey: sandbox.YouTubeAPIKey, Client: client, Now: now})
	require.NoError(w.t, err)
	display, err := tiktok.NewDisplay(tiktok.DisplayOptions{ClientKey: sandbox.TikTokClientKey, ClientSecret: sandbox.TikTokClientSecret,
		RefreshToken: sandbox.TikTokRefreshToken, Client: client, Tokens: w.db.Queue, Now: now})
	require.NoError(w.t, err)
	research, err := tiktok.NewResearch(tiktok.ResearchOptions{ClientKey: sandbox.TikTokResearchClientKey,
		ClientSecret: sandbox.TikTokResearchClientSecret, Client: client, Now: now})
	require.NoError(w.t, err)
	settings := w.sandbox.Settings(w.url)
	ig, err := instagram.New(instagram.Options{Token: sandbox.InstagramToken, AccountID: settings["REELTALLY_INSTAGRAM_ACCOUNT_ID"], Client: client, Now: now})
	require.NoError(w.t, err)
	fb, err := facebook.New(facebook.Options{Token: sandbox.FacebookToken, PageIDs: []string{settings["REELTALLY_FACEBOOK_PAGE_ID"]}, Client: client, Now: now})
	require.NoError(w.t, err)
	sources := []source.Source{yt, display, research, ig, fb}
	for _, name := range []string{"apify", "ensembledata", "scrapecreators"} {
		config, err := vendor.Load(name)
		require.NoError(w.t, err)
		v, err := vendor.New(config, vendor.Options{Key: sandbox.VendorKey, Client: client, Now: now})
		require.NoError(w.t, err)
		sources = append(sources, v)
	}
	return sources
}

// TestHostileLinks_sourcesConnectOnlyToTheirHosts lets platforms and vendors answer with hostile
// redirects, URLs and page tokens. The sources must connect only to the standard hosts.
func TestHostileLinks_sourcesConnectOnlyToTheirHosts(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	w := newTestSystem(t, storetest.New(t, "sqlite"))
	attacker := &compromisedHosts{sandbox: w.sandbox.Handler(), calls: map[string]int{}, linkReturned: map[string]int{}, cached: map[string]cachedAnswer{}}
	internet := outboundtest.NewInternet(t, outboundtest.InDomains(standardHosts...), attacker)
	var targets []queue.Target
	for _, p := range link.Platforms {
		handle := w.accountWithUploads(p, 33)
		if p == link.TikTok {
			handle = w.sandbox.TikTokAccount() // the Display API shows only the videos of the authorized account
		}
		l := w.accountLink(p, handle)
		targets = append(targets, queue.Target{Platform: p, Kind: queue.KindAccount, ExternalID: "@" + l.Handle, Handle: l.Handle, Link: l.Canonical, Depth: 60})
		correct, ok := w.sandbox.World().Video(p, w.sandbox.World().Uploads(p, handle, w.db.Clock.Now())[0], w.db.Clock.Now())
		require.True(t, ok)
		targets = append(targets, queue.Target{Platform: p, Kind: queue.KindVideo, ExternalID: correct.ID, Handle: l.Handle, Link: correct.Link, NeedDetails: true})
	}
	client := fetch.New(fetch.Options{Timeout: 5 * time.Second, Lookup: internet.Lookup, Dial: internet.Dial, RootCAs: internet.Authority.Roots})
	t.Cleanup(client.Close)
	sources := w.defaultSources(client)
	ask := func(hostileLink string, redirect int) int64 {
		attacker.setHostileLink(hostileLink, redirect)
		var answered atomic.Int64
		var work sync.WaitGroup
		for _, s := range sources {
			work.Go(func() {
				for _, target := range targets {
					plans := s.Plan([]queue.Target{target})
					if _, ok := s.Serves(target); !ok || len(plans) == 0 {
						continue
					}
					if results, err := s.Fetch(t.Context(), []queue.Target{target}, source.NewCallBudget(plans[0])); err == nil && results[0].Class == source.OK {
						answered.Add(1)
					}
				}
			})
		}
		work.Wait()
		return answered.Load()
	}
	statuses := []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}
	answered := int64(0)
	links := outboundtest.Links(t, internet.Listener)
	for i, l := range links {
		hostileLink := strings.ToValidUTF8(l.URL, "")
		answered += ask(hostileLink, 0)
		require.Zero(t, ask(hostileLink, statuses[i%len(statuses)]), "a redirect must not count as an answer")
	}
	require.Positive(t, answered, "answers with hostile links must still be read")
	for _, host := range standardHosts {
		require.Greater(t, attacker.calls[host], len(links), host)
	}
	for _, host := range []string{"youtube.googleapis.com", "graph.facebook.com", "api.scrapecreators.com"} {
		require.GreaterOrEqual(t, attacker.linkReturned[host], len(links), "page tokens must be sent back to %s", host)
	}
	internet.RequireNoForbiddenConnection(t, outboundtest.InDomains(standardHosts...))
	require.ElementsMatch(t, standardHosts, internet.LookedUpHosts())
}
