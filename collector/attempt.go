package collector

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// attempt is one try to fetch a target. It contains the answers of the sources that were asked so far, and is stored as JSON in
// queue.Target.Answers.
//
// The sources of a target are asked one after the other, each in its own queue, until one gives the numbers. A source that cannot answer
// for a target is then skipped for a week, as long as another source gives the numbers.
type attempt struct {
	// Running is true while further sources have to be asked. If it is false, the attempt has ended. Answers then contains only the answers of
	// the sources that the next fetch skips.
	Running bool     `json:"running,omitempty"`
	Answers []answer `json:"answers,omitempty"`
	// Counted is set if a source gave the counts but not all details. The following sources are then asked for details only.
	Counted *counted `json:"counted,omitempty"`
}

// answer says why a source gave no numbers.
type answer struct {
	Source string       `json:"source"`
	Class  source.Class `json:"class"` // class of the answer, or quota.Paused
	Detail string       `json:"detail,omitempty"`
	At     time.Time    `json:"at"`
	Until  time.Time    `json:"until,omitzero"`  // the end of the source's pause, if Class is quota.Paused
	Pause  source.Class `json:"pause,omitempty"` // the class of the source's pause, if Class is quota.Paused
}

// counted names the source that gave the counts of a video. Facts contains what that source said about the video, without the counts.
type counted struct {
	Source string        `json:"source"`
	Facts  *source.Facts `json:"facts"`
}

// attemptOf returns the attempt that is stored with a target. It returns an empty attempt if the stored one cannot be read.
func attemptOf(t queue.Target) attempt {
	var a attempt
	if t.Answers != nil && json.Unmarshal([]byte(*t.Answers), &a) != nil {
		return attempt{} // an unreadable attempt starts again with the first source
	}
	if !a.Running {
		return attempt{Answers: a.Answers}
	}
	return a
}

// text returns the attempt as JSON, or nil if the attempt is empty.
func (a attempt) text() *string {
	if len(a.Answers) == 0 && a.Counted == nil {
		return nil
	}
	b, err := json.Marshal(a)
	if err != nil {
		return nil // cannot fail: all fields are strings, booleans, counts or times
	}
	text := string(b)
	return &text
}

// withResult returns a copy of the attempt to which the result r of the worker's source is added.
func (w *worker) withResult(a attempt, r source.Result, at time.Time) attempt {
	because := answer{Source: w.source.Name(), Class: r.Class, Detail: r.Detail, At: at}
	if r.Class == quota.Paused {
		because.Until, because.Pause = r.Failed.RetryAt, r.Failed.Class
	}
	a.Answers = append(slices.Clone(a.Answers), because)
	return a
}

// find returns the first answer of the given class, or nil if there is none.
func (a attempt) find(class source.Class) *answer {
	for _, r := range a.Answers {
		if r.Class == class {
			return &r
		}
	}
	return nil
}

// nextSource returns the first source that serves the target and has not answered in the attempt. It returns nil if no source is left.
func (c *Collector) nextSource(t queue.Target, a attempt) source.Source {
	for _, s := range c.Sources {
		_, serves := s.Serves(t)
		counted := a.Counted != nil && a.Counted.Source == s.Name()
		if serves && !counted && !slices.ContainsFunc(a.Answers, func(r answer) bool { return r.Source == s.Name() }) {
			return s
		}
	}
	return nil
}

// end ends the attempt a. It sets o.Route to the first source that the next fetch does not skip, and o.Answers to the answers of the
// skipped sources. A source is skipped if it gave an answer of a class in keep less than a week before the next fetch. If every source
// would be skipped, o.Route is the first source that serves the target.
func (c *Collector) end(o *ingest.Outcome, a attempt, keep ...source.Class) {
	var skipped attempt
	for _, s := range c.Sources {
		if _, ok := s.Serves(o.Target); !ok {
			continue
		}
		at := slices.IndexFunc(a.Answers, func(r answer) bool {
			return r.Source == s.Name() && slices.Contains(keep, r.Class) && o.NextAt.Time().Before(r.At.Add(schedule.Weekly))
		})
		if at < 0 {
			o.Route, o.Answers = s.Name(), skipped.text()
			return
		}
		skipped.Answers = append(skipped.Answers, a.Answers[at])
	}
	if first := c.nextSource(o.Target, attempt{}); first != nil { // every source would be skipped
		o.Route, o.Answers = first.Name(), nil
	}
}

// continued returns the outcome o with changes that continue the attempt a at another source: the target is due now, and its route is the source
// next.
func continued(o ingest.Outcome, a attempt, next source.Source, now time.Time) ingest.Outcome {
	a.Running = true
	o.NextAt, o.Route, o.Answers, o.Onward = store.InstantOf(now), next.Name(), a.text(), true
	return o
}

// unchanged returns an outcome that leaves the stored fields of a target as they are.
func unchanged(t queue.Target) ingest.Outcome {
	return ingest.Outcome{Target: t, State: t.State, Pace: t.Pace, Attempts: t.Attempts, RefusedAs: t.RefusedAs, Refusals: t.Refusals,
		Suspect: t.Suspect, Answers: t.Answers}
}
