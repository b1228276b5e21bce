package sandbox

import (
	"math"
	"strconv"

	"github.com/reeltally/reeltally/store/link"
)

// curve is how the counts of a video grow with its age. Every count is a share of the same progress, so that none ever
// outgrows the views.
type curve struct {
	final     float64 // the views that it tends to
	tau, beta float64 // the power law: seconds until it slows, and how fast
	late      bool    // most of the views come in one late burst
	burstAt   float64 // seconds of age
	burstLen  float64
	phases    [2]float64 // of the day and of the week

	likes, comments, shares, bookmarks float64 // of the views
}

// curve is drawn around the scale of the account that the id itself says, never of a claimed one: the counts of an id must not
// depend on who asked for it before.
func (w *World) curve(p link.Platform, id string, account uint32, c Category) curve {
	scale := dice{w.accountKey("scale", p, account)}
	median := scale.logBetween(1_500, 300_000)
	d := dice{keyed(w.seed, "curve", string(p), id)}
	v := curve{
		final:     min(max(median*math.Exp(0.9*d.normal()), 500), 5e7),
		tau:       d.logBetween(6*3600, 5*day),
		beta:      d.between(0.35, 1.1),
		phases:    [2]float64{d.between(0, 2*math.Pi), d.between(0, 2*math.Pi)},
		likes:     d.logBetween(0.02, 0.11),
		comments:  d.logBetween(0.0008, 0.009),
		shares:    d.logBetween(0.001, 0.015),
		bookmarks: d.logBetween(0.002, 0.025),
	}
	if c == Viral {
		v.late = true
		v.final = min(median*d.logBetween(25, 150), 4e8)
		v.burstAt = d.between(2, 30) * day
		v.burstLen = d.between(0.15, 0.8) * day
	}
	return v
}

// progress goes from 0 at age 0 towards 1 and never falls. Age is in seconds and counts in whole minutes: less would be lost
// in the rounding of the last digits, where a curve must not fall either.
func (c curve) progress(age int64) float64 {
	if age < 60 {
		return 0
	}
	a := warp(float64(age/60*60), c.phases)
	slow := 1 - math.Pow(1+a/c.tau, -c.beta)
	if !c.late {
		return slow
	}
	start := logistic(-c.burstAt / c.burstLen)
	burst := (logistic((a-c.burstAt)/c.burstLen) - start) / (1 - start)
	return 0.1*slow + 0.9*burst
}

// warp lets time run faster by day and at the weekend. Its slope stays above zero.
func warp(age float64, phases [2]float64) float64 {
	daily, weekly := 2*math.Pi/day, 2*math.Pi/(7*day)
	return age +
		0.35/daily*(math.Sin(daily*age+phases[0])-math.Sin(phases[0])) +
		0.55/weekly*(math.Sin(weekly*age+phases[1])-math.Sin(phases[1]))
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Counts are what a video had at an instant. Nil is a count that the platform does not show: shares and bookmarks but for
// TikTok (and shares on Facebook), hidden likes, closed comments on YouTube.
type Counts struct {
	Views     int64  `json:"views"`
	Likes     *int64 `json:"likes"`
	Comments  *int64 `json:"comments"`
	Shares    *int64 `json:"shares"`
	Bookmarks *int64 `json:"bookmarks"`
}

// counts are at least one each from the first second on, views well above the sum of the others.
func (v *video) counts(at int64) Counts {
	views := v.curve.final * v.curve.progress(at-v.uploaded)
	if v.category == Falling && at >= v.turnsAt {
		views *= 1 - v.fall
	}
	of := func(rate float64) *int64 {
		n := 1 + int64(views*rate)
		return &n
	}
	c := Counts{Views: 20 + int64(views), Likes: of(v.curve.likes), Comments: of(v.curve.comments)}
	switch v.platform {
	case link.TikTok:
		c.Shares, c.Bookmarks = of(v.curve.shares), of(v.curve.bookmarks)
	case link.Facebook:
		c.Shares = of(v.curve.shares)
	}
	if v.category == HiddenLikes {
		c.Likes = nil
	}
	if v.category == CommentsOff {
		// Only YouTube leaves the count out; the others say zero.
		c.Comments = nil
		if v.platform != link.YouTube {
			c.Comments = new(int64)
		}
	}
	return c
}

// decimal spells a count as YouTube does.
func decimal(n int64) string { return strconv.FormatInt(n, 10) }
