// Package vendor collects through a bought vendor: a service that sells the public numbers of platforms which give
// them to nobody else. One adapter serves every vendor; what distinguishes them is a description in JSON, so that a new
// vendor needs no new code.
package vendor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

const (
	defaultConcurrency = 4
	// smallerFor is how long batches stay small after the vendor refused one for its size.
	smallerFor = 15 * time.Minute
	callBudget = "calls" // the budget of a vendor without known limits
)

// Options of the source.
type Options struct {
	BaseURL string // "" means the description's
	Key     string
	Client  *fetch.Client
	Now     func() time.Time
}

// Source asks one vendor.
type Source struct {
	config  Config
	api     *fetch.Endpoint
	key     string
	now     func() time.Time
	budgets []source.Budget
	sizes   []batchSize // of config.Calls
}

// batchSize is the size of a call's batches, which is smaller for a while after a refusal.
type batchSize struct {
	mu      sync.Mutex
	smaller int
	until   time.Time
}

var (
	_ source.Source        = (*Source)(nil)
	_ source.NetworkSource = (*Source)(nil)
)

// New makes the source of a vendor that Load or Decode has described. It returns an error when the key is missing or
// the base address is no http or https address.
func New(config Config, o Options) (*Source, error) {
	if o.Key == "" {
		return nil, fmt.Errorf("vendor: the key of %s is missing", config.Name)
	}
	if o.Client == nil || o.Now == nil {
		return nil, errors.New("vendor: Client and Now are required")
	}
	if o.BaseURL != "" {
		config.BaseURL = o.BaseURL
	}
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("vendor: %s: %w", config.Name, errors.New(fetch.Redact(err.Error(), o.Key)))
	}
	api, err := o.Client.Endpoint(config.BaseURL, config.standard)
	if err != nil {
		return nil, fmt.Errorf("vendor: %s: %w", config.Name, errors.New(fetch.Redact(err.Error(), o.Key)))
	}
	s := &Source{
		config: config, api: api, key: o.Key, now: o.Now,
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

// Name is "vendor:" and the vendor's name.
func (s *Source) Name() string { return "vendor:" + s.config.Name }

// Address is where the vendor is asked.
func (s *Source) Address() string { return s.api.Address() }

// Clock is the server's.
func (s *Source) Clock(ctx context.Context) (time.Time, error) { return s.api.Clock(ctx) }

// Budgets lists the description's limits, or one without a known limit.
func (s *Source) Budgets() []source.Budget { return s.budgets }

// Plan counts every call of the batch against every limit: one as a rule, and for an account one for its profile and as many
// as the pages of its list may take.
func (s *Source) Plan(batch []source.Target) [][]source.Call {
	var calls int
	if areAccounts(batch) {
		calls = s.accountCalls(batch)
	} else {
		calls = len(s.chunks(batch))
	}
	plan := make([]source.Call, len(s.budgets))
	for i, b := range s.budgets {
		plan[i] = source.Call{Bucket: b.Name, Units: int64(max(calls, 1))}
	}
	return [][]source.Call{plan}
}

// Serves takes what one of the description's calls can ask for. A target without an id stands for all of its kind, and
// gets the largest batch that any of them can have.
func (s *Source) Serves(t source.Target) (int, bool) {
	if t.ExternalID != "" {
		i := s.callFor(t)
		if i < 0 {
			return 0, false
		}
		return s.size(i), true
	}
	largest := 0
	for i, c := range s.config.Calls {
		if c.takes(t) {
			largest = max(largest, s.size(i))
		}
	}
	return largest, largest > 0
}

// AsksByHandle returns true if the call for the video names its account.
func (s *Source) AsksByHandle(t source.Target) bool {
	call := s.callFor(t)
	return call >= 0 && slices.ContainsFunc(s.config.Calls[call].templates(), func(template string) bool { return strings.Contains(template, "{handle}") })
}

func (s *Source) size(call int) int { return s.sizes[call].get(s.config.Calls[call].size(), s.now()) }

func (s *Source) callFor(t source.Target) int {
	return slices.IndexFunc(s.config.Calls, func(c Call) bool { return c.takes(t) })
}

func (b *batchSize) get(full int, now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.smaller > 0 && now.Before(b.until) {
		return b.smaller
	}
	return full
}

// shrink makes batches half as large as the one that was refused.
func (b *batchSize) shrink(refused int, now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.smaller, b.until = max(refused/2, 1), now.Add(smallerFor)
	return b.smaller
}

// chunk is what one call asks for: distinct targets.
type chunk struct {
	call    int
	targets []source.Target
}

func (c chunk) ids() []string {
	ids := make([]string, len(c.targets))
	for i, t := range c.targets {
		ids[i] = t.ExternalID
	}
	return ids
}

// chunks parts a batch into calls. It is one call unless the targets differ in what is known of them.
func (s *Source) chunks(batch []source.Target) []chunk {
	var chunks []chunk
	seen := make(map[string]bool, len(batch))
	open := make(map[int]int) // by call, the chunk that still has room
	for _, t := range batch {
		call := s.callFor(t)
		if call < 0 || t.ExternalID == "" || seen[t.ExternalID] {
			continue
		}
		seen[t.ExternalID] = true
		at, ok := open[call]
		if !ok || len(chunks[at].targets) >= s.config.Calls[call].size() {
			at = len(chunks)
			open[call] = at
			chunks = append(chunks, chunk{call: call})
		}
		chunks[at].targets = append(chunks[at].targets, t)
	}
	return chunks
}

// Fetch asks for a batch, usually in one call. If the vendor refuses several targets and one of them may be the cause, the failure is
// Temporary. The collector then asks for them in smaller batches. If the vendor says that there are too many targets, Serves returns
// smaller batches for a while. If a later call of a batch fails, its targets get the result source.Unanswered.
func (s *Source) Fetch(ctx context.Context, batch []source.Target, budget *source.CallBudget) ([]source.Result, error) {
	if areAccounts(batch) {
		budget.Meter()
		return s.fetchAccounts(ctx, batch, budget)
	}
	answers := make(map[string]source.Result, len(batch))
	unanswered := make(map[string]bool)
	var failed error
	for i, chunk := range s.chunks(batch) {
		var found map[string]source.Result
		if failed == nil {
			found, failed = s.fetch(ctx, budget, chunk)
			if failed != nil && i == 0 {
				return nil, failed
			}
		}
		for _, id := range chunk.ids() {
			answers[id], unanswered[id] = found[id], failed != nil
		}
	}
	results := make([]source.Result, len(batch))
	for i, t := range batch {
		r, ok := answers[t.ExternalID]
		if unanswered[t.ExternalID] {
			r = source.Unanswered(t, failed)
		}
		if !ok || t.Platform != batch[0].Platform {
			r = source.Result{Class: source.Unsupported, Detail: s.config.Name + " is not configured for it"}
		}
		if r.Facts != nil {
			own := *r.Facts // a target may stand in a batch twice
			r.Facts = &own
		}
		r.Target = t
		results[i] = r
	}
	return results, nil
}

// fetch makes one call. It gives the outcome for each of the chunk's ids, or the failure of the call as a whole.
func (s *Source) fetch(ctx context.Context, budget *source.CallBudget, c chunk) (map[string]source.Result, error) {
	call := s.config.Calls[c.call]
	f := filling{join: call.Batch.Join}
	for _, t := range c.targets {
		f.of = append(f.of, valuesOf(t))
	}
	res, err := s.ask(ctx, budget, call.Request, f)
	if err != nil {
		return nil, err
	}
	answers, err := s.read(res, c.call, c.ids())
	for id, r := range answers {
		r.Sandbox = res.Sandbox
		answers[id] = r
	}
	return answers, err
}

// Timeout returns the timeout of the description. If the description has none, it returns that of the HTTP client.
func (s *Source) Timeout() time.Duration {
	return cmp.Or(time.Duration(s.config.Timeout), s.api.Timeout())
}

// Concurrency returns the concurrency of the description, because each vendor allows another number of calls at the same time. The
// default is 4.
func (s *Source) Concurrency() int { return cmp.Or(s.config.Concurrency, defaultConcurrency) }

// Group returns "": a batch may mix all targets of a kind.
func (s *Source) Group(source.Target) string { return "" }

// ask makes the call.
func (s *Source) ask(ctx context.Context, budget *source.CallBudget, r Request, f filling) (*fetch.Response, error) {
	req := r.build(s.Address(), s.config.Auth, s.key, time.Duration(s.config.Timeout), f)
	req.Budget = budget
	return s.api.Do(ctx, req)
}

// judge says what an answer as a whole means.
func (s *Source) judge(res *fetch.Response) (body gjson.Result, verdict, detail string) {
	detail = fmt.Sprintf("HTTP %d", res.Status)
	if broken := fetch.CheckJSON(res.Body); broken != nil {
		detail += ": " + broken.Error()
	} else {
		body = gjson.ParseBytes(res.Body)
		if said := s.config.message(body); said != "" {
			detail += ": " + fetch.Redact(said, s.key)
		}
	}
	verdict, _ = s.config.verdict(res.Status, body)
	return body, verdict, detail
}

// failure is what an answer means that concerns the whole source.
func (s *Source) failure(res *fetch.Response, body gjson.Result, class source.Class, detail string) *source.Failure {
	now := s.now()
	f := &source.Failure{Class: class, Detail: detail, RetryAt: fetch.RetryAfter(res.Header, now)}
	_, f.OfSource = s.config.verdict(res.Status, body)
	if class == source.QuotaSpent && f.RetryAt.IsZero() && s.config.QuotaResets != "" {
		_, f.RetryAt = s.config.QuotaResets.window(now)
	}
	return f
}

// read gives the outcome for each id, or the failure of the call as a whole.
func (s *Source) read(res *fetch.Response, at int, ids []string) (map[string]source.Result, error) {
	now := s.now()
	call := s.config.Calls[at]
	body, verdict, detail := s.judge(res)
	class := source.Class(verdict)
	switch {
	case class == source.OK:
		items, err := findItems(body, call.Items, call.Unwrap)
		if err != nil {
			return nil, &source.Failure{Class: source.Temporary, Detail: err.Error()}
		}
		return call.read(items, ids, now), nil
	case len(ids) > 1 && verdict == split:
		size := s.sizes[at].shrink(len(ids), now)
		return nil, &source.Failure{
			Class:  source.Temporary,
			Detail: fmt.Sprintf("%d targets at once are too many, %d at a time from now on: %s", len(ids), size, detail),
		}
	case len(ids) > 1 && slices.Contains(targetClasses, class):
		return nil, &source.Failure{Class: source.Temporary, Detail: fmt.Sprintf("%d targets at once were refused as %s: %s", len(ids), class, detail)}
	case verdict == split:
		return nil, &source.Failure{Class: source.BadRequest, Detail: "a single target was refused as too many: " + detail}
	case slices.Contains(targetClasses, class):
		return map[string]source.Result{ids[0]: {Class: class, Detail: detail}}, nil
	}
	return nil, s.failure(res, body, class, detail)
}
