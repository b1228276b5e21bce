package collector

import (
	"encoding/json"
	"time"

	"github.com/reeltally/reeltally/store/queue"
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
	// aheadOfViews is how many likes and the like a video without views may have: some platforms count views later.
	aheadOfViews = 10
	// likedFrom is from how many views on nobody believes at once that there is no like.
	likedFrom = 10_000
	// comparedFrom is from how many views on those of two videos are compared: smaller ones are alike by chance.
	comparedFrom = 1000
	// grown is by how much views are expected to have grown at the most when they are compared with another video's.
	grown = 1.25
)

const anothers = "the views of another video"

// doubt says why facts are not to be believed at once; "" when they are.
func doubt(t queue.Target, f *Facts, now time.Time) string {
	if f.Views == nil {
		return ""
	}
	views := *f.Views
	more := func(n *int64) bool { return n != nil && *n > views && (views > 0 || *n >= aheadOfViews) }
	switch {
	case t.Views != nil && *t.Views > 0 && float64(views) < implausibleDrop*float64(*t.Views):
		return "views fell to less than a hundredth"
	case t.Views == nil && views == 0 && (f.UploadedAt == nil || now.Sub(*f.UploadedAt) > zeroIsNormalFor):
		return "no views though the video is not new"
	case more(f.Likes):
		return "more likes than views"
	case more(f.Comments):
		return "more comments than views"
	case more(f.Shares):
		return "more shares than views"
	case more(f.Bookmarks):
		return "more bookmarks than views"
	case f.Likes != nil && *f.Likes == 0 && views >= likedFrom:
		return "no likes though there are many views"
	}
	return ""
}

// doubtAccount is doubt for an account.
func doubtAccount(t queue.Target, a *AccountFacts) string {
	if a.Followers != nil && t.Views != nil && float64(*a.Followers) < implausibleDrop*float64(*t.Views) {
		return "followers fell to less than a hundredth"
	}
	return ""
}

// compare doubts the results of a batch whose views are another's: two videos have changed places, or one has the numbers
// of a neighbour. Of videos that were never measured nothing can be told.
func compare(batch []queue.Target, results []Result) {
	type pair struct{ was, is int64 }
	views := make(map[int]pair, len(batch))
	for i, r := range results {
		if was := batch[i].Views; r.Class == OK && r.Facts != nil && r.Facts.Views != nil && was != nil && *was >= comparedFrom {
			views[i] = pair{*was, *r.Facts.Views}
		}
	}
	var changed []int
	fell := false
	for i, v := range views {
		if follows(v.is, v.was) {
			continue
		}
		for j, other := range views {
			stays := follows(other.is, other.was)
			switch {
			case i == j:
			case stays && v.is == other.is && v.is >= comparedFrom:
				results[i].doubt = anothers
			case !stays && follows(v.is, other.was):
				changed, fell = append(changed, i), fell || v.is < v.was
			}
		}
	}
	if fell && len(changed) > 1 { // views hardly ever fall, and then not to where another's were
		for _, i := range changed {
			results[i].doubt = anothers
		}
	}
}

// follows says whether views are what may be expected after the last ones.
func follows(is, was int64) bool { return is >= was && float64(is) <= grown*float64(was) }

// weigh decides on the facts of a result: nil when they may be written, else the suspicion with which the target goes on.
func weigh(t queue.Target, r Result, now time.Time) *suspicion {
	var before suspicion
	if t.Suspect == nil || json.Unmarshal([]byte(*t.Suspect), &before) != nil {
		before = suspicion{}
	}
	var why string
	if r.Account != nil {
		why = doubtAccount(t, r.Account)
	} else {
		why = doubt(t, r.Facts, now)
	}
	switch {
	case why != "" || r.Facts == nil:
	case before.Why == anothers && r.Facts.Views != nil && t.Views != nil && !follows(*r.Facts.Views, *t.Views):
		why = anothers // also when it is asked for without the other one
	default:
		why = r.doubt
	}
	if why == "" {
		return nil
	}
	s := suspicion{Why: why, Since: now}
	if before.Why == why {
		s = before
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
