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

// attempt is one try to fetch a target, stored as JSON in queue.Target.Answers. The sources are
// asked one after the other, until one gives the numbers.
type attempt struct {
	Running bool `json:"running,omitempty"` // true while another source has to be asked
	// Answers has an entry for each source that returned no numbers. At the end of the attempt, only the
	// entries of sources that the next fetch must skip are kept.
	Answers []answer `json:"answers,omitempty"`
	// Counted is set if a source gave the counts of a video, but not all of its details. The next sources are
	// then asked for details only.
	Counted *countsSource `json:"counted,omitempty"`
}

// answer describes why a source returned no numbers for the target.
type answer struct {
	Source string       `json:"source"`
	Class  source.Class `json:"class"` // class of the answer; quota.Paused if the source was paused
	Detail string       `json:"detail,omitempty"`
	At     time.Time    `json:"at"`
	Until  time.Time    `json:"until,omitzero"`  // the end of the source's pause, if Class is quota.Paused
	Pause  source.Class `json:"pause,omitempty"` // the class of the source's pause, if Class is quota.Paused
}

// countsSource has the name of the source that gave the counts of a video.
type countsSource struct {
	Source string        `json:"source"`
	Facts  *source.Facts `json:"facts"` // details that the source gave, such as title and account; without counts
}

// parseAttempt returns the attempt that is stored with a target. It returns an empty attempt if none is stored, or if the stored attempt
// cannot be read.
func parseAttempt(t queue.Target) attempt {
	var a attempt
	if t.Answers != nil && json.Unmarshal([]byte(*t.Answers), &a) != nil {
		return attempt{} // the next fetch asks the sources again, beginning with the first
	}
	if !a.Running {
		return attempt{Answers: a.Answers}
	}
	return a
}

// encodeJSON returns the attempt as JSON, or nil if the attempt is empty.
func (a attempt) encodeJSON() *string {
	if len(a.Answers) == 0 && a.Counted == nil {
		return nil
	}
	b, err := json.Marshal(a)
	if err != nil {
		return nil // json.Marshal cannot fail here: all fields are strings, booleans, numbers or times
	}
	text := string(b)
	return &text
}

// addAnswer adds the result of the worker's source to a copy of the attempt, and returns the copy.
func (w *worker) addAnswer(soFar attempt, r source.Result, answeredAt time.Time) attempt {
	added := answer{Source: w.source.Name(), Class: r.Class, Detail: r.Detail, At: answeredAt}
	if r.Class == quota.Paused {
		added.Until, added.Pause = r.Failed.RetryAt, r.Failed.Class
	}
	soFar.Answers = append(slices.Clone(soFar.Answers), added)
	return soFar
}

// firstAnswerOfClass returns the first answer of one of the given classes in the attempt, or nil if there is none.
func (a attempt) firstAnswerOfClass(classes ...source.Class) *answer {
	for _, r := range a.Answers {
		if slices.Contains(classes, r.Class) {
			return &r
		}
	}
	return nil
}

// firstAnswerToResume returns the answer of the paused source whose pause ends first. It returns nil if no
// source was paused.
func (a attempt) firstAnswerToResume() *answer {
	var first *answer
	for _, r := range a.Answers {
		if r.Class == quota.Paused && (first == nil || r.Until.Before(first.Until)) {
			first = &r
		}
	}
	return first
}

// nextSource returns the first configured source that serves the target and has not yet answered in
// the current attempt, or nil if there is none.
func (c *Collector) nextSource(t queue.Target, current attempt) source.Source {
	for _, s := range c.Sources {
		_, serves := s.Serves(t)
		counted := current.Counted != nil && current.Counted.Source == s.Name()
		if serves && !counted && !slices.ContainsFunc(current.Answers, func(r answer) bool { return r.Source == s.Name() }) {
			return s
		}
	}
	return nil
}

// temporarySkipTime is the time for which a source is skipped because all its fetches of a target failed for temporary reasons. It is shorter than
// the time for lasting reasons, because a failure of the whole source can have been the cause.
const temporarySkipTime = 48 * time.Hour

// endAttempt stores the source of the next fetch in o.Route, and the answers of the skipped sources in o.Answers. The source of the next fetch
// is the first one that serves the target and is not skipped.
func (c *Collector) endAttempt(o *ingest.Outcome, ended attempt, skipClasses ...source.Class) {
	var skipped attempt
	for _, s := range c.Sources {
		if _, ok := s.Serves(o.Target); !ok {
			continue
		}
		// Skip a source whose answer has one of the skipClasses. The skip ends when the answer is a week old. If the class of the answer
		// is Temporary, the skip ends when the answer is temporarySkipTime old.
		at := slices.IndexFunc(ended.Answers, func(r answer) bool {
			skipTime := schedule.Weekly
			if r.Class == source.Temporary {
				skipTime = temporarySkipTime
			}
			return r.Source == s.Name() && slices.Contains(skipClasses, r.Class) && o.NextAt.Time().Before(r.At.Add(skipTime))
		})
		if at < 0 {
			o.Route, o.Answers = s.Name(), skipped.encodeJSON()
			return
		}
		skipped.Answers = append(skipped.Answers, ended.Answers[at])
	}
	// Every source that serves the target would be skipped. In this case, the next fetch asks the first of them again, and the answers are deleted.
	if first := c.nextSource(o.Target, attempt{}); first != nil {
		o.Route, o.Answers = first.Name(), nil
	}
}

// continueAttempt returns a copy of the outcome in which the target is due immediately and the attempt continues with the given source.
func continueAttempt(o ingest.Outcome, current attempt, s source.Source, now time.Time) ingest.Outcome {
	current.Running = true
	o.NextAt, o.Route, o.Answers, o.Onward = store.InstantOf(now), s.Name(), current.encodeJSON(), true
	return o
}

// unchangedOutcome returns an outcome that leaves all stored fields of the target unchanged. The caller then sets the fields that change.
func unchangedOutcome(t queue.Target) ingest.Outcome {
	return ingest.Outcome{Target: t, State: t.State, Pace: t.Pace, Attempts: t.Attempts, RefusedAs: t.RefusedAs, Refusals: t.Refusals,
		Suspect: t.Suspect, Answers: t.Answers}
}
