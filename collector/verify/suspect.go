// Package verify decides whether an answer of a source may be believed. All of it is pure.
//
// Sources sometimes answer with zeros, with the numbers of another video, with old numbers, or with another account that has taken over a
// handle. A number that is hardly possible is held back until the source has repeated it for a while ([Check]); an answer about another
// account, or an older answer, is never written ([Account], [IsOlder]). Start reading at [Check].
package verify

import (
	"encoding/json"
	"time"

	"github.com/reeltally/reeltally/collector/source"
)

// Suspicion is what is known about a number that is held back. It is stored with the target as JSON.
type Suspicion struct {
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
	Seen  int       `json:"seen"` // how often in a row the source gave such a number
}

const (
	// A number is believed after enoughSightings in a row, over confirmNew, or over confirmKnown if earlier numbers were good.
	enoughSightings = 4
	confirmKnown    = 6 * time.Hour
	confirmNew      = time.Hour
	// implausibleDrop is the share of the last views below which a count is doubted.
	implausibleDrop = 0.01
	// A video may have no views on its first day.
	zeroIsNormalFor = 24 * time.Hour
	// aheadOfViews is how many likes a video without views may have, because some platforms count views later.
	aheadOfViews = 10
	// likesExpected is the number of views from which a video without likes is doubted.
	likesExpected = 10_000
	// comparableViews is the number of views from which two videos are compared: smaller numbers are equal by chance.
	comparableViews = 1000
	// expectedGrowth is the largest growth of views that is expected when they are compared with another video's.
	expectedGrowth = 1.25
)

const otherVideosViews = "the views of another video"

// Check returns nil if the facts of a result may be written. Otherwise it returns the suspicion to store with the target. mixedUp is
// true if MixedUp found the result.
func Check(t source.Target, r source.Result, mixedUp bool, now time.Time) *Suspicion {
	var before Suspicion
	if t.Suspect == nil || json.Unmarshal([]byte(*t.Suspect), &before) != nil {
		before = Suspicion{}
	}
	why := ""
	switch {
	case r.Account != nil:
		why = doubtAccount(t, r.Account)
	case r.Facts != nil:
		why = doubtVideo(t, r.Facts, now)
		// The doubt remains when the video is asked for without the other video of its batch.
		still := before.Why == otherVideosViews && r.Facts.Views != nil && t.Views != nil && !follows(*r.Facts.Views, *t.Views)
		if why == "" && (mixedUp || still) {
			why = otherVideosViews
		}
	}
	if why == "" {
		return nil
	}
	s := Suspicion{Why: why, Since: now}
	if before.Why == why {
		s = before
	}
	s.Seen++
	confirm := confirmNew
	if t.Views != nil {
		confirm = confirmKnown
	}
	if s.Seen >= enoughSightings && now.Sub(s.Since) >= confirm {
		return nil
	}
	return &s
}

// Text returns the suspicion as JSON.
func (s *Suspicion) Text() *string {
	b, err := json.Marshal(s)
	if err != nil {
		return nil // two strings, a time and a number always encode
	}
	text := string(b)
	return &text
}

// doubtVideo returns why the facts of a video are doubted, "" if they are not.
func doubtVideo(t source.Target, f *source.Facts, now time.Time) string {
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
	case f.Likes != nil && *f.Likes == 0 && views >= likesExpected:
		return "no likes though there are many views"
	}
	return ""
}

// doubtAccount returns why the facts of an account are doubted, "" if they are not.
func doubtAccount(t source.Target, a *source.AccountFacts) string {
	if a.Followers != nil && t.Views != nil && float64(*a.Followers) < implausibleDrop*float64(*t.Views) {
		return "followers fell to less than a hundredth"
	}
	return ""
}

// MixedUp returns the indexes of the results of a batch that have the views of another video of the batch: two videos have swapped
// their numbers, or one has the numbers of another. Videos that were never measured cannot be compared.
func MixedUp(batch []source.Target, results []source.Result) map[int]bool {
	type pair struct{ was, is int64 }
	views := make(map[int]pair, len(batch))
	for i, r := range results {
		if was := batch[i].Views; r.Class == source.OK && r.Facts != nil && r.Facts.Views != nil && was != nil && *was >= comparableViews {
			views[i] = pair{*was, *r.Facts.Views}
		}
	}
	mixedUp, swapped := map[int]bool{}, []int{}
	fell := false
	for i, v := range views {
		if follows(v.is, v.was) {
			continue
		}
		for j, other := range views {
			otherFollows := follows(other.is, other.was)
			switch {
			case i == j:
			case otherFollows && v.is == other.is && v.is >= comparableViews:
				mixedUp[i] = true
			case !otherFollows && follows(v.is, other.was):
				swapped, fell = append(swapped, i), fell || v.is < v.was
			}
		}
	}
	if fell && len(swapped) > 1 { // views hardly ever fall, and then not to the views of another video
		for _, i := range swapped {
			mixedUp[i] = true
		}
	}
	return mixedUp
}

// follows returns true if views are what may be expected after the last ones.
func follows(is, was int64) bool { return is >= was && float64(is) <= expectedGrowth*float64(was) }
