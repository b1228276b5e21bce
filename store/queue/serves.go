package queue

import (
	"context"
	"strings"
	"time"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// Form is a form of the targets that a collector can fetch.
type Form struct {
	Platform link.Platform
	Kind     Kind
	// ByHandle is true for targets with the handle of the account, and false for targets with only the platform's own id.
	ByHandle bool
}

// String returns the form as it is stored, for example "youtube/video/id".
func (f Form) String() string {
	by := "id"
	if f.ByHandle {
		by = "handle"
	}
	return string(f.Platform) + "/" + string(f.Kind) + "/" + by
}

// formsText returns forms as one text, separated by spaces.
func formsText(forms []Form) string {
	texts := make([]string, len(forms))
	for i, f := range forms {
		texts[i] = f.String()
	}
	return strings.Join(texts, " ")
}

// servesFor is how long the forms of a collector are valid after its last heartbeat.
const servesFor = 10 * time.Second

// Served says what the running collectors can fetch.
type Served struct{ forms map[string]bool }

// Served reads what the running collectors can fetch. Each collector writes it with its heartbeat.
func (s *Queue) Served(ctx context.Context) (Served, error) {
	var texts []string
	err := s.db.Read(ctx).Raw(`SELECT serves FROM collectors WHERE seen_at >= ? AND serves <> ''`, s.db.Now().Add(-servesFor)).Scan(&texts).Error
	served := Served{forms: map[string]bool{}}
	for _, text := range texts {
		for form := range strings.FieldsSeq(text) {
			served.forms[form] = true
		}
	}
	return served, db.Translate(err)
}

// Known returns true if a collector is running. Otherwise it is not known what can be fetched.
func (s Served) Known() bool { return len(s.forms) > 0 }

// Can returns true if a running collector can fetch targets of the form f.
func (s Served) Can(f Form) bool { return s.forms[f.String()] }
