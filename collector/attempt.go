package collector

import (
	"encoding/json"
	"slices"
	"time"

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
	// Running is true while further sources have to be asked. If Running is false, Answers contains the answers of the last week because of
	// which a source is skipped in the next fetch.
	Running bool     `json:"running,omitempty"`
	Answers []answer `json:"answers,omitempty"`
	// Counted is set if a source gave the counts but not all details. The following sources are then asked for details only.
	Counted *counted `json:"counted,omitempty"`
}

// answer says why a source gave no numbers.
type answer struct {
	Source string       `json:"source"`
	Class  source.Class `json:"class"` // class of the answer, or the constant paused if the source was not asked because of a pause
	Detail string       `json:"detail,omitempty"`
	At     time.Time    `json:"at"`
	Until  time.Time    `json:"until,omitzero"`  // the end of the source's pause
	Pause  source.Class `json:"pause,omitempty"` // the class of the source's pause
}

// paused is the answer.Class of a source that was not asked because it is paused.
const paused source.Class = "paused"

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

// with returns a copy of the attempt with one more answer.
func (a attempt) with(r answer) attempt {
	a.Answers = append(slices.Clone(a.Answers), r)
	return a
}

// find returns the first answer of a class in classes. found is false if there is no such answer.
func (a attempt) find(classes ...source.Class) (first answer, found bool) {
	at := slices.IndexFunc(a.Answers, func(r answer) bool { return slices.Contains(classes, r.Class) })
	if at < 0 {
		return answer{}, false
	}
	return a.Answers[at], true
}

// hasAnswered returns true if the named source has already answered in this attempt or gave the counts.
func (a attempt) hasAnswered(name string) bool {
	return a.Counted != nil && a.Counted.Source == name || slices.ContainsFunc(a.Answers, func(r answer) bool { return r.Source == name })
}

// nextSource returns the first source that serves the target and has not answered in the attempt. It returns nil if no source is left.
func (c *Collector) nextSource(t queue.Target, a attempt) source.Source {
	for _, s := range c.sources {
		if _, ok := s.Serves(t); ok && !a.hasAnswered(s.Name()) {
			return s
		}
	}
	return nil
}

// end ends an attempt, and sets in o which source is asked in the next fetch. A source is skipped if it gave an answer of a class in keep
// within the last week. The answers of the skipped sources are stored with the target.
func (c *Collector) end(o *ingest.Outcome, a attempt, keep ...source.Class) {
	rest := attempt{Answers: slices.DeleteFunc(slices.Clone(a.Answers), func(r answer) bool {
		return !slices.Contains(keep, r.Class) || !o.NextAt.Time().Before(r.At.Add(schedule.Weekly))
	})}
	next := c.nextSource(o.Target, rest)
	if next == nil {
		rest, next = attempt{}, c.nextSource(o.Target, attempt{})
	}
	if next == nil {
		return
	}
	o.Route = next.Name()
	before := slices.IndexFunc(c.sources, func(s source.Source) bool { return s.Name() == o.Route })
	rest.Answers = slices.DeleteFunc(rest.Answers, func(r answer) bool {
		return !slices.ContainsFunc(c.sources[:before], func(s source.Source) bool { return s.Name() == r.Source })
	})
	o.Answers = rest.text()
}

// sendToNextSource returns the outcome that puts a target into the queue of its next source, due at once. ok is false if no source is left.
func (c *Collector) sendToNextSource(t queue.Target, a attempt, detail string, now time.Time) (o ingest.Outcome, ok bool) {
	next := c.nextSource(t, a)
	if next == nil {
		return o, false
	}
	a.Running = true
	o = unchanged(t)
	o.NextAt, o.Route, o.Answers, o.Onward = store.InstantOf(now), next.Name(), a.text(), true
	o.Detail = detail
	return o, true
}

// unchanged returns an outcome that keeps the stored state of a target.
func unchanged(t queue.Target) ingest.Outcome {
	return ingest.Outcome{Target: t, State: t.State, Pace: t.Pace, Attempts: t.Attempts, RefusedAs: t.RefusedAs, Refusals: t.Refusals,
		Suspect: t.Suspect, Answers: t.Answers}
}
