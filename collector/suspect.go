package collector

import (
	"encoding/json"
	"time"

	"github.com/reeltally/reeltally/store"
)

// A number that is hardly possible is a suspect, not a fact: it is held back until the source has repeated it for a
// while. Platforms do answer zeros, or another video's numbers, when something of theirs is broken.

// suspicion is what is known of a number that is held back; it travels in the target's row.
type suspicion struct {
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
	Seen  int       `json:"seen"`
}

const (
	enoughSightings = 4
	// How long a suspect must be repeated to be believed: longer where good numbers were seen before.
	confirmKnown = 6 * time.Hour
	confirmNew   = time.Hour
	// implausibleDrop is the share of the last views below which a count is not believed at once.
	implausibleDrop = 0.01
	// A video may have no views in its first day.
	zeroIsNormalFor = 24 * time.Hour
	// droppedFrom is from how many views on a drop is suspicious.
	droppedFrom = 10
)

// doubt says why facts are not to be believed at once; "" when they are.
func doubt(t store.Target, f *Facts, now time.Time) string {
	if f.Views == nil {
		return ""
	}
	views := *f.Views
	switch {
	case t.Views != nil && *t.Views >= droppedFrom && float64(views) < implausibleDrop*float64(*t.Views):
		return "views fell to less than a hundredth"
	case t.Views == nil && views == 0 && (f.UploadedAt == nil || now.Sub(*f.UploadedAt) > zeroIsNormalFor):
		return "no views though the video is not new"
	case f.Likes != nil && views > 0 && *f.Likes > views:
		return "more likes than views"
	}
	return ""
}

// weigh decides on facts: nil when they may be written, else the suspicion with which the target goes on.
func weigh(t store.Target, f *Facts, now time.Time) *suspicion {
	why := doubt(t, f, now)
	if why == "" {
		return nil
	}
	s := suspicion{Why: why, Since: now}
	if t.Suspect != nil {
		var before suspicion
		if json.Unmarshal([]byte(*t.Suspect), &before) == nil && before.Why == why {
			s = before
		}
	}
	s.Seen++
	wait := confirmNew
	if t.Views != nil {
		wait = confirmKnown
	}
	if s.Seen >= enoughSightings && now.Sub(s.Since) >= wait {
		return nil
	}
	return &s
}

func (s *suspicion) text() *string {
	if s == nil {
		return nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil // two strings, a time and a number always encode
	}
	text := string(b)
	return &text
}
