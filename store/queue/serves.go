package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// Form describes a group of targets with the same platform and kind. Each collector stores the
// forms that it can fetch.
type Form struct {
	Platform link.Platform
	Kind     Kind
	// ByHandle is true for targets with the handle of the account, and false for targets with only the platform's own id.
	ByHandle bool
}

// String returns the text with which the form f is stored, for example "youtube/video/id".
func (f Form) String() string {
	by := "id"
	if f.ByHandle {
		by = "handle"
	}
	return string(f.Platform) + "/" + string(f.Kind) + "/" + by
}

// joinForms returns the texts of forms, joined by spaces.
func joinForms(forms []Form) string {
	texts := make([]string, len(forms))
	for i, f := range forms {
		texts[i] = f.String()
	}
	return strings.Join(texts, " ")
}

// RunningFor is how long a collector counts as running after its last heartbeat. After this time,
// the store ignores the sources and forms of the collector.
const RunningFor = 10 * time.Second

// Fetchable says what the running collectors can fetch.
type Fetchable struct {
	forms   map[string]bool
	running bool // a collector is running
}

// Fetchable returns what the running collectors can fetch. Each heartbeat of a collector stores the forms of targets that this collector can fetch.
func (s *Queue) Fetchable(ctx context.Context) (Fetchable, error) {
	var texts []string
	err := s.db.Read(ctx).Raw(`SELECT serves FROM collectors WHERE seen_at >= ?`, s.db.Now().Add(-RunningFor)).Scan(&texts).Error
	served := Fetchable{forms: map[string]bool{}, running: len(texts) > 0}
	for _, text := range texts {
		for form := range strings.FieldsSeq(text) {
			served.forms[form] = true
		}
	}
	return served, db.Translate(err)
}

// IsRunning returns true if at least one collector is running.
func (s Fetchable) IsRunning() bool { return s.running }

// IsKnown returns true if a running collector can fetch any targets. If it returns false, it is unknown which targets can be fetched.
func (s Fetchable) IsKnown() bool { return len(s.forms) > 0 }

// CanFetch returns true if a running collector can fetch targets of the form f.
func (s Fetchable) CanFetch(f Form) bool { return s.forms[f.String()] }

// Source is a source of a running collector, with its budgets in their current windows.
type Source struct {
	Name    string   `json:"name"`
	Budgets []Budget `json:"budgets"`
	// FetchSeconds is the time limit for fetching videos. It is 0 if a collector of an earlier version runs.
	FetchSeconds int64 `json:"fetch_seconds,omitempty"`
	// HeldBack says why a collector holds back some answers of the source: those which say that a video or account does not exist. It is "" if no
	// answers are held back.
	HeldBack string `json:"held_back,omitempty"`
}

// Budget says how many units of a source may be spent in the current window of time.
type Budget struct {
	Name   string    `json:"name"`
	Limit  int64     `json:"limit"`  // units in the window; 0 if no limit is known
	Window string    `json:"window"` // name of the window; "" if the spent units are not counted
	Ends   time.Time `json:"ends"`   // end of the window
}

// publishedSources returns the sources of all running collectors, each once, in the order of their names. Answers of a source are held back if any
// collector holds them back.
func (s *Queue) publishedSources(ctx context.Context) ([]Source, error) {
	var texts []string
	err := s.db.Read(ctx).Raw(`SELECT sources FROM collectors WHERE seen_at >= ? AND sources <> '' ORDER BY seen_at DESC`, s.db.Now().Add(-RunningFor)).Scan(&texts).Error
	var all []Source
	for _, text := range texts {
		var sources []Source
		if err := json.Unmarshal([]byte(text), &sources); err != nil {
			return nil, err
		}
		for _, source := range sources {
			at := slices.IndexFunc(all, func(known Source) bool { return known.Name == source.Name })
			if at < 0 {
				all = append(all, source)
				continue
			}
			all[at].HeldBack = cmp.Or(all[at].HeldBack, source.HeldBack)
		}
	}
	slices.SortFunc(all, func(a, b Source) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}
