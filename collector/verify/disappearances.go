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
	// comparedAnswers is the maximum number of targets whose last answers Disappearances compares.
	comparedAnswers = 50
	// comparedTime is the maximum age of these answers.
	comparedTime = 12 * time.Hour
	// manyDisappeared is the minimum number of disappeared targets from which the source can be the cause.
	manyDisappeared = 5
)

// Disappearances remembers the last answers of one source about different targets. If the source says of most targets that they do not exist
// although they had numbers recently, the source is probably the cause. Its methods can be called concurrently.
type Disappearances struct {
	mu      sync.Mutex
	answers []lastAnswer // the latest comes last
	begin   time.Time    // when the source became the probable cause; zero while it is not
}

// lastAnswer is the last answer of a source about a target.
type lastAnswer struct {
	target      string
	at          time.Time
	disappeared bool
}

// IsDisappearance returns true if the result says that a target does not exist that had numbers less than recent ago.
func IsDisappearance(t source.Target, r source.Result, recent time.Duration, now time.Time) bool {
	return (r.Class == source.Gone || r.Class == source.Missing) && t.State != queue.StateGone && t.FetchedAt != nil && now.Sub(t.FetchedAt.Time()) < recent
}

// Record records an answer about the target. Call it for each answer with numbers, and for each disappearance.
func (d *Disappearances) Record(t source.Target, disappeared bool, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	target := string(t.Kind) + "/" + queue.TargetKey(t.Platform, t.ExternalID)
	d.answers = slices.DeleteFunc(d.answers, func(a lastAnswer) bool { return a.target == target })
	d.answers = append(d.answers, lastAnswer{target, now, disappeared})
	d.answers = d.answers[max(0, len(d.answers)-comparedAnswers):]
}

// Cause returns a text for operators if the source is probably the cause of the disappearances, and otherwise "".
func (d *Disappearances) Cause(now time.Time) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers = slices.DeleteFunc(d.answers, func(a lastAnswer) bool { return now.Sub(a.at) >= comparedTime })
	disappeared := 0
	for _, a := range d.answers {
		if a.disappeared {
			disappeared++
		}
	}
	if disappeared < manyDisappeared || 2*disappeared <= len(d.answers) {
		d.begin = time.Time{}
		return ""
	}
	if d.begin.IsZero() {
		d.begin = now
	}
	return fmt.Sprintf("%d of the last %d answers say that a recently fetched video or account does not exist; such answers are held back since %s",
		disappeared, len(d.answers), d.begin.UTC().Format(time.RFC3339))
}
