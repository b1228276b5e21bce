package sandbox

import (
	"maps"
	"sync"
)

// keptBatches is the maximum number of batches in the call log of each source. Older batches are removed.
const keptBatches = 1000

// sourceCalls has the numbers of calls to one source, including refused calls.
type sourceCalls struct {
	Calls          int            `json:"calls"`
	IDs            int            `json:"ids"` // number of requested ids, links and handles, including repeated ones
	MaxBatch       int            `json:"max_batch"`
	ByMethod       map[string]int `json:"by_method"`
	Batches        [][]string     `json:"batches"` // the requested ids of each call, oldest call first
	BatchesDropped int            `json:"batches_dropped"`
}

type callLog struct {
	mu      sync.Mutex
	sources map[string]*sourceCalls
}

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

func (l *callLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addSources()
}

func (l *callLog) add(c *call) {
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
		if len(log.Batches) == keptBatches {
			log.Batches = append(log.Batches[:0:0], log.Batches[1:]...)
			log.BatchesDropped++
		}
		log.Batches = append(log.Batches, append([]string{}, c.ids...))
	}
}

// snapshot returns a deep copy of the log's content.
func (l *callLog) snapshot() map[string]sourceCalls {
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
