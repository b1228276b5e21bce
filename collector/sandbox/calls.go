package sandbox

import (
	"maps"
	"sync"
)

// maxLoggedCalls is the maximum number of calls for which the call log keeps the requested ids, separately for each
// source. It keeps the ids of the newest calls.
const maxLoggedCalls = 1000

// sourceCalls describes the calls to one source, including refused calls: how many there were, and which ids they requested.
type sourceCalls struct {
	Calls          int            `json:"calls"`
	IDs            int            `json:"ids"`       // number of requested ids, links and handles, including repeated ones
	MaxBatch       int            `json:"max_batch"` // largest number of ids in one call
	ByMethod       map[string]int `json:"by_method"`
	Batches        [][]string     `json:"batches"`         // the requested ids of each call, oldest call first
	BatchesDropped int            `json:"batches_dropped"` // number of calls that were removed from Batches
}

// callLog counts the calls to each source and records the ids that they requested.
type callLog struct {
	mu      sync.Mutex
	sources map[string]*sourceCalls
}

// newCallLog returns a call log with 0 calls for each source.
func newCallLog() *callLog {
	l := &callLog{sources: map[string]*sourceCalls{}}
	l.addSources()
	return l
}

// addSources adds an entry for each source, so that a source without calls is listed with 0 calls.
func (l *callLog) addSources() {
	for _, name := range faultSources {
		l.sources[name] = &sourceCalls{ByMethod: map[string]int{}, Batches: [][]string{}}
	}
}

// reset removes all calls from the log. Each source is still listed, with 0 calls.
func (l *callLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addSources()
}

// recordCall records a call for its source. A call to a vendor is recorded a second time under c.platform, if that is not "".
func (l *callLog) recordCall(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range []string{c.source, c.platform} {
		log := l.sources[name]
		if log == nil {
			continue
		}
		log.Calls++
		log.IDs += len(c.ids)
		log.MaxBatch = max(log.MaxBatch, len(c.ids))
		log.ByMethod[c.method]++
		if len(log.Batches) == maxLoggedCalls {
			log.Batches = append(log.Batches[:0:0], log.Batches[1:]...)
			log.BatchesDropped++
		}
		log.Batches = append(log.Batches, append([]string{}, c.ids...))
	}
}

// copyCalls returns a copy of the call log: a map from the names of the sources to their calls.
func (l *callLog) copyCalls() map[string]sourceCalls {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]sourceCalls{}
	for name, log := range l.sources {
		entry := *log
		entry.ByMethod = maps.Clone(log.ByMethod)
		entry.Batches = append([][]string{}, log.Batches...)
		out[name] = entry
	}
	return out
}
