package vendor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	defaultConcurrency = 4
	// smallBatchTime is the time for which a reduced batch size applies. The batch size is reduced if a call had too many targets.
	smallBatchTime = 15 * time.Minute
	callBudget     = "calls" // name of the budget that counts the calls to a vendor if no limits are configured for the vendor
)

// Options are the settings of a Source.
type Options struct {
	BaseURL string // base URL of the vendor's API; "" means the base URL in the vendor's description
	Key     string
	Client  *fetch.Client
	Now     func() time.Time
}

// Source fetches videos and accounts from one vendor.
type Source struct {
	*fetch.Endpoint
	config  Config
	key     string
	now     func() time.Time
	budgets []source.Budget
	sizes   []batchSize // the current batch size of each call in config.Calls, in the same order
}

// batchSize is the largest number of targets in one call. If the vendor refuses a call because it has too many
// targets, or if an answer is too large, the size is smaller for smallBatchTime.
type batchSize struct {
	mu      sync.Mutex
	reduced int       // the smaller size that applies until the reduction ends; 0 if the size was never reduced
	ends    time.Time // the time from which the full size applies again
}

var _ source.Source = (*Source)(nil)

// New returns a source for a vendor. The config must be a result of Load or Decode, which have checked it. New returns an error if Key, Client or Now is
// missing, or if the base URL is invalid.
func New(config Config, o Options) (*Source, error) {
	if o.Key == "" {
		return nil, fmt.Errorf("vendor: the key of %s is missing", config.Name)
	}
	if o.Client == nil || o.Now == nil {
		return nil, errors.New("vendor: the options \"Client\" and \"Now\" are required")
	}
	if o.BaseURL != "" {
		config.BaseURL = o.BaseURL
	}
	api, err := o.Client.Endpoint(config.BaseURL, config.standard)
	if err != nil {
		return nil, fmt.Errorf("vendor: %s: %w", config.Name, errors.New(fetch.Redact(err.Error(), o.Key)))
	}
	s := &Source{
		Endpoint: api, config: config, key: o.Key, now: o.Now,
		sizes: make([]batchSize, len(config.Calls)),
	}
	for _, l := range config.Limits {
		s.budgets = append(s.budgets, source.Budget{Name: l.Name, Limit: l.Calls, Window: l.Per.window})
	}
	if len(s.budgets) == 0 {
		s.budgets = []source.Budget{{Name: callBudget, Window: Period("day").window}}
	}
	return s, nil
}

// Name returns "vendor:" followed by the name of the vendor.
func (s *Source) Name() string { return "vendor:" + s.config.Name }

// Budgets returns a budget for each limit in the vendor description. If the description has no limits, Budgets returns one budget that only
// counts the calls.
func (s *Source) Budgets() []source.Budget { return s.budgets }

// Plan returns the number of calls to reserve in each budget. A batch of videos usually needs one call.
func (s *Source) Plan(batch []queue.Target) [][]source.Call {
	var calls int
	if source.AreAccounts(batch) {
		calls = s.maxAccountCalls(batch)
	} else {
		calls = len(s.splitBatch(batch))
	}
	plan := make([]source.Call, len(s.budgets))
	for i, b := range s.budgets {
		plan[i] = source.Call{Budget: b.Name, Units: int64(max(calls, 1))}
	}
	return [][]source.Call{plan}
}

// Serves returns the maximum number of targets of one call that requests t. If t has no id, this is the maximum for the platform and kind of t. If no
// call can request t, ok is false.
func (s *Source) Serves(t queue.Target) (batch int, ok bool) {
	if t.ExternalID != "" {
		i := s.callIndexFor(t)
		if i < 0 {
			return 0, false
		}
		return s.currentBatchSize(i), true
	}
	largest := 0
	for i, c := range s.config.Calls {
		if c.canRequest(t) {
			largest = max(largest, s.currentBatchSize(i))
		}
	}
	return largest, largest > 0
}

// NeedsHandle returns true if the request for the target contains its handle. The answer to such a request must be checked, because the
// handle may now belong to another account.
func (s *Source) NeedsHandle(t queue.Target) bool {
	call := s.callIndexFor(t)
	return call >= 0 && s.config.Calls[call].uses("{handle}")
}

// OnlyAccounts returns "", because vendors sell the numbers of every public account.
func (s *Source) OnlyAccounts() string { return "" }

// currentBatchSize returns how many targets a call can request at present. callIndex is the index of the call in the vendor description.
func (s *Source) currentBatchSize(callIndex int) int {
	return s.sizes[callIndex].current(s.config.Calls[callIndex].maxTargets(), s.now())
}

// callIndexFor returns the index of the first call in the vendor description that can request the target, or -1 if no call can.
func (s *Source) callIndexFor(t queue.Target) int {
	return slices.IndexFunc(s.config.Calls, func(c Call) bool { return c.canRequest(t) })
}

// current returns the current batch size: the reduced size while the reduction lasts, and the full size otherwise.
func (b *batchSize) current(fullSize int, now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reduced > 0 && now.Before(b.ends) {
		return b.reduced
	}
	return fullSize
}

// reduce sets the batch size to half of the size of the refused batch. The reduction lasts for smallBatchTime. reduce returns the new size.
func (b *batchSize) reduce(refusedSize int, now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reduced, b.ends = max(refusedSize/2, 1), now.Add(smallBatchTime)
	return b.reduced
}

// chunk has the targets of a batch that are requested with one call, without duplicates.
type chunk struct {
	call    int // index of the call in the vendor description
	targets []queue.Target
}

// ids returns the external ids of the chunk's targets.
func (c chunk) ids() []string {
	ids := make([]string, len(c.targets))
	for i, t := range c.targets {
		ids[i] = t.ExternalID
	}
	return ids
}

// splitBatch divides a batch into chunks, one for each call. Usually one call is enough. A target is left
// out if no call can request it.
func (s *Source) splitBatch(batch []queue.Target) []chunk {
	var chunks []chunk
	seen := make(map[string]bool, len(batch))
	open := make(map[int]int) // maps the index of a call to the index of its last chunk
	for _, t := range batch {
		call := s.callIndexFor(t)
		if call < 0 || t.ExternalID == "" || seen[t.ExternalID] {
			continue
		}
		seen[t.ExternalID] = true
		at, ok := open[call]
		if !ok || len(chunks[at].targets) >= s.config.Calls[call].maxTargets() {
			at = len(chunks)
			open[call] = at
			chunks = append(chunks, chunk{call: call})
		}
		chunks[at].targets = append(chunks[at].targets, t)
	}
	return chunks
}

// Fetch requests a batch, usually with one call. If the first call fails, Fetch returns its failure.
// After a later failure, the targets without an answer get source.UnansweredResult.
func (s *Source) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	if source.AreAccounts(batch) {
		return source.FetchEach(ctx, batch, func(ctx context.Context, t queue.Target) (source.Result, error) {
			return s.fetchAccount(ctx, budget, t)
		})
	}
	answers := make(map[string]source.Result, len(batch)) // maps the id of a target to its result
	var failed error
	for i, chunk := range s.splitBatch(batch) {
		if failed == nil {
			var found map[string]source.Result
			found, failed = s.fetchChunk(ctx, budget, chunk)
			if failed != nil && i == 0 {
				return nil, failed
			}
			maps.Copy(answers, found)
		}
		if failed != nil {
			for _, t := range chunk.targets {
				answers[t.ExternalID] = source.UnansweredResult(t, failed)
			}
		}
	}
	results := make([]source.Result, len(batch))
	for i, t := range batch {
		r, ok := answers[t.ExternalID]
		if !ok || t.Platform != batch[0].Platform {
			r = source.Result{Class: source.Unsupported, Detail: fmt.Sprintf("%s has no call for this target", s.config.Name)}
		}
		results[i] = r.ForTarget(t)
	}
	return results, nil
}

// fetchChunk makes the call for one chunk of a batch. It returns a result for each id in the chunk, or a failure.
func (s *Source) fetchChunk(ctx context.Context, budget *source.CallBudget, c chunk) (map[string]source.Result, error) {
	call := s.config.Calls[c.call]
	b := batchValues{join: call.Batch.Join}
	for _, t := range c.targets {
		b.targets = append(b.targets, placeholderValues(t))
	}
	res, err := s.sendRequest(ctx, budget, call.Request, b, &call)
	if errors.Is(err, fetch.ErrTooLarge) && len(c.targets) > 1 {
		s.sizes[c.call].reduce(len(c.targets), s.now())
	}
	if err != nil {
		return nil, err
	}
	answers, err := s.parseResults(res, c.call, c.ids())
	for id, r := range answers {
		r.Sandbox = res.Sandbox
		answers[id] = r
	}
	return answers, err
}

// Timeout returns the timeout of one call. It is the timeout in the vendor description or, if the description has none, the timeout of the
// HTTP client.
func (s *Source) Timeout() time.Duration {
	return cmp.Or(time.Duration(s.config.Timeout), s.Endpoint.Timeout())
}

// Concurrency returns the maximum number of concurrent Fetch calls: the number in the vendor description, or 4 if it has none.
func (s *Source) Concurrency() int { return cmp.Or(s.config.Concurrency, defaultConcurrency) }

// Group returns "" for every target. All targets of the same platform and kind then belong to the same group, so they can be fetched in one
// batch.
func (s *Source) Group(queue.Target) string { return "" }

// sendRequest sends the request that a template describes, with the placeholder values of the targets. If the request starts a run, sendRequest
// returns the answer with the items of the run. It waits for the start even if ctx is cancelled, because it could not abort a run without its id.
// videoCall is explained at finishRun.
func (s *Source) sendRequest(ctx context.Context, budget *source.CallBudget, r Request, b batchValues, videoCall *Call) (*fetch.Response, error) {
	req := s.buildRequest(r, b)
	req.Budget = budget
	if s.config.Run == nil {
		return s.Do(ctx, req)
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) { // the collector is stopping, so it starts no run
		return nil, err
	}
	stopping, cancel := cancelLate(ctx)
	defer cancel()
	res, err := s.Do(stopping, req)
	if err != nil {
		return nil, err
	}
	return s.finishRun(ctx, stopping, res, videoCall)
}

// classifyAnswer returns the parsed body, the class and the log detail of an answer. If the answer is
// not JSON, the body is the zero Result.
func (s *Source) classifyAnswer(res *fetch.Response) (body gjson.Result, class, detail string) {
	detail = fmt.Sprintf("HTTP %d", res.Status)
	if err := fetch.CheckJSON(res.Body); err != nil {
		detail += ": " + err.Error()
	} else {
		body = gjson.ParseBytes(res.Body)
		if message := s.config.errorText(body); message != "" {
			detail += ": " + fetch.Redact(message, s.key)
		}
	}
	class, _ = s.config.classOf(res.Status, body)
	return body, class, detail
}

// sourceFailure returns the *source.Failure for an answer that concerns all targets, such as a rate limit.
func (s *Source) sourceFailure(res *fetch.Response, body gjson.Result, class source.Class, detail string) *source.Failure {
	now := s.now()
	f := &source.Failure{Class: class, Detail: detail, RetryAt: fetch.RetryAfter(res.Header, now)}
	_, f.OfSource = s.config.classOf(res.Status, body)
	if class == source.QuotaSpent && f.RetryAt.IsZero() && s.config.QuotaResets != "" {
		_, f.RetryAt = s.config.QuotaResets.window(now)
	}
	return f
}

// parseResults maps the requested ids to their results. It returns a failure if the answer concerns the
// whole call, such as a rate limit.
func (s *Source) parseResults(res *fetch.Response, callIndex int, ids []string) (map[string]source.Result, error) {
	now := s.now()
	call := s.config.Calls[callIndex]
	body, text, detail := s.classifyAnswer(res)
	class := source.Class(text)
	switch {
	case class == source.OK:
		items, err := findItems(body, call.Items, call.Unwrap)
		if err != nil {
			return nil, &source.Failure{Class: source.Temporary, Detail: err.Error()}
		}
		return call.decodeResults(items, ids, now), nil
	case len(ids) > 1 && text == split:
		size := s.sizes[callIndex].reduce(len(ids), now)
		return nil, &source.Failure{
			Class:  source.Temporary,
			Detail: fmt.Sprintf("%d targets are too many for one call; for now, a batch has at most %d targets: %s", len(ids), size, detail),
		}
	case len(ids) > 1 && slices.Contains(targetClasses, class):
		// One target may be the cause. After this failure, the collector tries smaller batches.
		return nil, &source.Failure{Class: source.Temporary, Detail: fmt.Sprintf("a call for %d targets was refused as %s: %s", len(ids), class, detail)}
	case text == split:
		return nil, &source.Failure{Class: source.BadRequest, Detail: "the vendor says that a call for one target has too many targets: " + detail}
	case slices.Contains(targetClasses, class):
		return map[string]source.Result{ids[0]: {Class: class, Detail: detail}}, nil
	}
	return nil, s.sourceFailure(res, body, class, detail)
}
