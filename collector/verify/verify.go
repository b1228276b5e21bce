// Package verify decides whether a source's answer is plausible enough to be stored. Its functions depend only on their
// parameters, except for the methods of [Disappearances].
//
// Sources sometimes answer with zeros, with the numbers of another video, with old numbers, or with another account that has taken over a
// handle. A suspicious number is stored only after later answers have confirmed it ([Check]). Zeros of a video
// that had views ([IsWiped]), an answer about another account ([CheckIdentity]) and an older answer ([IsOlder]) are never stored. Start reading
// at [Check].
package verify

import (
	"encoding/json"
	"time"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Suspicion says why the counts of a target are suspicious, and since when. It is stored with the target as JSON.
type Suspicion struct {
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
	Seen  int       `json:"seen"` // number of consecutive answers that were suspicious for this reason
	// RisenTo is the number of views that is held back because it rose implausibly, or 0 if another count is suspicious.
	RisenTo int64 `json:"risen_to,omitempty"`
}

const (
	// enoughAnswers is the number of consecutive suspicious answers after which the counts can be accepted: see Check.
	enoughAnswers = 4
	// confirmKnownAfter is the minimum time between the first and the last suspicious answer, for a target that
	// has stored counts.
	confirmKnownAfter = 6 * time.Hour
	// confirmNewAfter is the minimum time between the first and the last suspicious answer, for a target that
	// has no stored counts.
	confirmNewAfter = time.Hour
	// implausibleRise and manyNewViews limit the plausible growth of the views between two fetches that are less than riseTime apart. The growth is
	// suspicious if it exceeds both: the factor implausibleRise and the number manyNewViews.
	implausibleRise = 50
	manyNewViews    = 10_000_000
	riseTime        = 48 * time.Hour
	// confirmRiseAfter is the minimum time between the first answer with an implausible rise and the answer that confirms the rise.
	confirmRiseAfter = 5 * time.Minute
	// implausibleDrop is a fraction. A fetched count is suspicious if it is below this fraction of the stored count.
	implausibleDrop = 0.01
	// zeroIsNormalFor is the time after the upload in which zero views are not suspicious.
	zeroIsNormalFor = 24 * time.Hour
	// suspiciousCountWithoutViews is the number of likes, comments, shares or bookmarks that makes zero
	// views suspicious. Some platforms count views later, so smaller numbers are normal.
	suspiciousCountWithoutViews = 10
	// viewsWithExpectedLikes is a number of views. A video with at least this many views and no likes is suspicious.
	viewsWithExpectedLikes = 10_000
	// comparableViews is the number of views below which FindMixedUpResults ignores a video, because small numbers are often equal by chance.
	comparableViews = 1000
	// comparableCount is the number of stored likes, comments, shares or bookmarks from which a fall below implausibleDrop is suspicious.
	comparableCount = 100
	// manyViews is a number of stored views. Zero views of a video with at least so many views are never accepted. For fewer views, see IsWiped.
	manyViews = 1000
	// expectedGrowth is the largest factor by which the views of a video are expected to grow between two fetches.
	expectedGrowth = 1.25
	// handleTrustedFor is a time after the last fetch of an account. Until then, its handle is assumed to
	// belong to the same account, even if account ids cannot be compared.
	handleTrustedFor = 3 * 24 * time.Hour
	// longestLag is the maximum age of the numbers of a source whose numbers can be old. For such a source,
	// Result.Lags is true.
	longestLag = 10 * 24 * time.Hour
)

const (
	otherVideosViews = "the views of another video"
	risenViews       = "views rose to more than 50 times as many, by more than 10 million"
)

// Check returns nil if the facts in a result may be stored. Otherwise it returns a Suspicion, which must be
// stored with the target. mixedUp is true if FindMixedUpResults has returned the index of this result.
func Check(t queue.Target, r source.Result, mixedUp bool, now time.Time) *Suspicion {
	var before Suspicion
	if t.Suspect == nil || json.Unmarshal([]byte(*t.Suspect), &before) != nil {
		before = Suspicion{}
	}
	why := ""
	switch {
	case r.Account != nil:
		why = accountSuspicion(t, r.Account)
	case r.Facts != nil:
		why = videoSuspicion(t, r.Facts, now)
		// A target with the suspicion otherVideosViews keeps it while its views are implausible, even if mixedUp is false. The other video may just
		// be missing from this batch.
		still := before.Why == otherVideosViews && r.Facts.Views != nil && t.Views != nil && !isPlausibleGrowth(*r.Facts.Views, *t.Views)
		if why == "" && (mixedUp || still) {
			why = otherVideosViews
		}
		if why == "" && roseImplausibly(t, r.Facts, now) {
			return checkRise(before, *r.Facts.Views, now)
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
	confirm := confirmNewAfter
	if t.Counts != (store.Counts{}) {
		confirm = confirmKnownAfter
	}
	if s.Seen >= enoughAnswers && now.Sub(s.Since) >= confirm && !IsWiped(t, r) {
		return nil
	}
	return &s
}

// roseImplausibly returns true if the views rose by more than implausibleRise and manyNewViews since a fetch in the last riseTime. If there
// was no fetch, the stored views come from an import or from an earlier time of tracking. Their age is unknown then, so it does not matter.
func roseImplausibly(t queue.Target, f *source.Facts, now time.Time) bool {
	if f.Views == nil || t.Views == nil || t.FetchedAt != nil && now.Sub(t.FetchedAt.Time()) >= riseTime {
		return false
	}
	return *f.Views-*t.Views > manyNewViews && *f.Views/implausibleRise > *t.Views
}

// checkRise returns nil if an earlier answer confirms an implausible rise of the views. One confirmation is enough, because the views of a viral
// video can really rise so fast. The second answer must have at least nine tenths and less than about ten times the views of the first. If a source
// sends random numbers, its next answer is usually not in this range.
func checkRise(before Suspicion, views int64, now time.Time) *Suspicion {
	if before.Why != risenViews || views < before.RisenTo-before.RisenTo/10 || views/10 > before.RisenTo {
		before = Suspicion{Why: risenViews, Since: now, RisenTo: views}
	}
	before.Seen++
	if before.Seen > 1 && now.Sub(before.Since) >= confirmRiseAfter {
		return nil
	}
	return &before
}

// IsWiped returns true if the source reports zero views, although the stored number of views is not zero. If the stored number is less than
// manyViews, the source must also report other counts, and all of them must be zero. Some sources report zeros for removed videos.
func IsWiped(t queue.Target, r source.Result) bool {
	f := r.Facts
	if f == nil || f.Views == nil || *f.Views != 0 || t.Views == nil || *t.Views == 0 {
		return false
	}
	zeros := 0 // number of counts besides the views that are zero
	for _, n := range [...]*int64{f.Likes, f.Comments, f.Shares, f.Bookmarks} {
		switch {
		case n == nil:
		case *n > 0:
			return *t.Views >= manyViews
		default:
			zeros++
		}
	}
	return *t.Views >= manyViews || zeros > 0
}

// Text returns the suspicion as JSON text, as it is stored with the target.
func (s *Suspicion) Text() *string {
	b, err := json.Marshal(s)
	if err != nil {
		return nil // json.Marshal cannot fail here, because a Suspicion has only a text, a time and two numbers
	}
	text := string(b)
	return &text
}

// fallenCount returns the name of a count, such as likes, that fell to less than implausibleDrop of at least comparableCount. It returns ""
// if no count fell so far. Likes that the source declares as hidden are not compared.
func fallenCount(t queue.Target, f *source.Facts) string {
	hidden := f.HiddenStats != nil && *f.HiddenStats
	for _, c := range [...]struct {
		name            string
		stored, fetched *int64
	}{{"likes", t.Likes, f.Likes}, {"comments", t.Comments, f.Comments}, {"shares", t.Shares, f.Shares}, {"bookmarks", t.Bookmarks, f.Bookmarks}} {
		if c.stored != nil && c.fetched != nil && *c.stored >= comparableCount && float64(*c.fetched) < implausibleDrop*float64(*c.stored) && (c.name != "likes" || !hidden) {
			return c.name
		}
	}
	return ""
}

// videoSuspicion returns why the facts of a video are suspicious, or "" if they are plausible.
func videoSuspicion(t queue.Target, f *source.Facts, now time.Time) string {
	fallen := fallenCount(t, f)
	if f.Views == nil {
		if fallen != "" {
			return fallen + " fell to less than a hundredth"
		}
		return ""
	}
	views := *f.Views
	more := func(n *int64) bool { return n != nil && *n > views && (views > 0 || *n >= suspiciousCountWithoutViews) }
	switch {
	case t.Views != nil && *t.Views > 0 && float64(views) < implausibleDrop*float64(*t.Views):
		return "views fell to less than a hundredth"
	case fallen != "":
		return fallen + " fell to less than a hundredth"
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
	case f.Likes != nil && *f.Likes == 0 && views >= viewsWithExpectedLikes:
		return "no likes though there are many views"
	}
	return ""
}

// accountSuspicion returns why the facts of an account are suspicious, or "" if they are plausible. For an account, t.Views is
// the stored number of followers.
func accountSuspicion(t queue.Target, a *source.AccountFacts) string {
	if a.Followers != nil && t.Views != nil && float64(*a.Followers) < implausibleDrop*float64(*t.Views) {
		return "followers fell to less than a hundredth"
	}
	return ""
}

// FindMixedUpResults returns the indexes of results that probably contain the views of another video in
// the batch. Videos with fewer stored views than comparableViews are not compared.
func FindMixedUpResults(batch []queue.Target, results []source.Result) map[int]bool {
	type viewCounts struct{ stored, fetched int64 }
	views := make(map[int]viewCounts, len(batch))
	for i, r := range results {
		if stored := batch[i].Views; r.Class == source.OK && r.Facts != nil && r.Facts.Views != nil && stored != nil && *stored >= comparableViews {
			views[i] = viewCounts{*stored, *r.Facts.Views}
		}
	}
	mixedUp, swapped := map[int]bool{}, []int{}
	fell := false
	for i, v := range views {
		if isPlausibleGrowth(v.fetched, v.stored) {
			continue
		}
		for j, other := range views {
			otherPlausible := isPlausibleGrowth(other.fetched, other.stored)
			switch {
			case i == j:
			case otherPlausible && v.fetched == other.fetched && v.fetched >= comparableViews:
				// This video has a copy of the other video's views.
				mixedUp[i] = true
			case !otherPlausible && isPlausibleGrowth(v.fetched, other.stored):
				// The two videos may have exchanged their views.
				swapped, fell = append(swapped, i), fell || v.fetched < v.stored
			}
		}
	}
	// Views hardly ever fall, so a fall is a sign of mixed-up videos. If the views of all swapped videos rose,
	// the growth may be real.
	if fell && len(swapped) > 1 {
		for _, i := range swapped {
			mixedUp[i] = true
		}
	}
	return mixedUp
}

// isPlausibleGrowth returns true if the fetched views are plausible after the stored views: they are not lower, and at most expectedGrowth
// times as high.
func isPlausibleGrowth(fetched, stored int64) bool {
	return fetched >= stored && float64(fetched) <= expectedGrowth*float64(stored)
}

// CheckIdentity returns the given result. If the handle may now belong to another account, it returns a result
// with the class OtherOwner, or Missing if the account ids cannot be compared.
func CheckIdentity(requested queue.Target, r source.Result, now time.Time) source.Result {
	switch {
	case r.Account == nil:
	case source.IsOtherAccount(requested, r.Account):
		return source.ResultForReusedHandle(requested, r.Sandbox)
	case haveIncomparableIDs(requested, r.Account) && (requested.FetchedAt == nil || now.Sub(requested.FetchedAt.Time()) > handleTrustedFor):
		return source.Result{Target: requested, Class: source.Missing, Sandbox: r.Sandbox,
			Detail: "this source returns another kind of account id, so it is not known which account now has the handle " + requested.Handle}
	}
	return r
}

// haveIncomparableIDs returns true if the target and the facts both have account ids, but no id of the
// same kind.
func haveIncomparableIDs(t queue.Target, f *source.AccountFacts) bool {
	common := t.AccountID != "" && f.ID != nil || t.SourceID != "" && f.SourceID != nil
	return !common && (t.AccountID != "" || t.SourceID != "") && (f.ID != nil || f.SourceID != nil)
}

// IsOlder returns true if the counts in a result are probably older than the stored counts. Only a result
// whose field Lags is true can be older.
func IsOlder(t queue.Target, r source.Result, now time.Time) bool {
	f := r.Facts
	// If the stored views are older than longestLag, the result must be newer, so the views really fell.
	return r.Lags && f != nil && t.Views != nil && f.Views != nil && *f.Views < *t.Views && t.FetchedAt != nil && now.Sub(t.FetchedAt.Time()) < longestLag
}
