package verify

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	// comparedAnswers is the maximum number of targets of one source whose last answers Disappearances compares.
	comparedAnswers = 50
	// comparedTime is the maximum age of these answers.
	comparedTime = 12 * time.Hour
	// manyDisappeared is the minimum number of disappeared targets before the source is suspected.
	manyDisappeared = 5
	// manyAccounts is the minimum number of accounts to which the disappeared targets must belong before the source is suspected. If the videos of fewer
	// accounts disappear, the platform has probably closed the accounts.
	manyAccounts = 3
)

// Disappearances remembers the last answers of each source about different targets. If a source says of most targets that they do not exist although
// they had numbers recently, the source is probably the cause. The zero value is ready to use. The methods can be called concurrently.
type Disappearances struct {
	mu      sync.Mutex
	sources map[string]*lastAnswers // by the name of the source
}

// lastAnswers are the last answers of one source.
type lastAnswers struct {
	answers []lastAnswer // one for each target; the latest comes last
	since   time.Time    // since when the source is the probable cause; zero if it is not
}

// lastAnswer is the last answer of a source about a target.
type lastAnswer struct {
	target      string
	account     string // handle of the account, or the target if the handle is unknown
	at          time.Time
	disappeared bool
}

// IsDisappearance returns true if the result says that a target does not exist, although the target had numbers less than the duration recent ago
// and is not gone yet.
func IsDisappearance(t queue.Target, r source.Result, recent time.Duration, now time.Time) bool {
	return (r.Class == source.Gone || r.Class == source.Missing) && t.State != queue.StateGone && t.FetchedAt != nil && now.Sub(t.FetchedAt.Time()) < recent
}

// Record records an answer of a source about the target. Call it for each answer with numbers, and for each disappearance.
func (d *Disappearances) Record(sourceName string, t queue.Target, disappeared bool, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sources == nil {
		d.sources = map[string]*lastAnswers{}
	}
	s := d.sources[sourceName]
	if s == nil {
		s = &lastAnswers{}
		d.sources[sourceName] = s
	}
	target := string(t.Kind) + "/" + queue.TargetKey(t.Platform, t.ExternalID)
	account := target
	if t.Handle != "" {
		account = queue.TargetKey(t.Platform, t.Handle)
	}
	s.answers = slices.DeleteFunc(s.answers, func(a lastAnswer) bool { return a.target == target })
	s.answers = append(s.answers, lastAnswer{target, account, now, disappeared})
	s.answers = slices.Delete(s.answers, 0, max(0, len(s.answers)-comparedAnswers))
}

// Cause returns a sentence for operators if the source is probably the cause of the disappearances that it reports, and otherwise "". The sentence says
// why answers are held back, since when and until when.
func (d *Disappearances) Cause(sourceName string, now time.Time) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sources[sourceName]
	if s == nil {
		return ""
	}
	s.answers = slices.DeleteFunc(s.answers, func(a lastAnswer) bool { return now.Sub(a.at) >= comparedTime })
	disappeared, accounts := 0, map[string]bool{}
	for _, a := range s.answers {
		if a.disappeared {
			disappeared++
			accounts[a.account] = true
		}
	}
	if disappeared < manyDisappeared || len(accounts) < manyAccounts || 2*disappeared <= len(s.answers) {
		s.since = time.Time{}
		return ""
	}
	if s.since.IsZero() {
		s.since = now
	}
	return fmt.Sprintf("%d of the last %d answers say that a recently fetched video or account does not exist; such answers are held back since %s, until at most half of the answers say so",
		disappeared, len(s.answers), s.since.UTC().Format(time.RFC3339))
}
