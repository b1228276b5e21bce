package sandbox

import (
	"math"
	"strconv"

	"github.com/reeltally/reeltally/store/link"
)

// curve has the parameters of the growth of a video's counts. Likes, comments, shares and bookmarks are fixed fractions of the views, so
// that none of them ever exceeds the views.
type curve struct {
	final     float64    // the number that the views approach, but never reach
	tau, beta float64    // scale (in seconds) and exponent of the power law in fractionOfFinalViews
	late      bool       // true if most views come in one late burst
	burstAt   float64    // the video's age at the burst, in seconds
	burstLen  float64    // duration of the burst, in seconds
	phases    [2]float64 // phases of the daily and the weekly wave, in radians

	likes, comments, shares, bookmarks float64 // likes, comments, shares and bookmarks as fractions of the views
}

// growthCurve returns the random growth curve of a video. The curve depends only on the seed and the arguments. derivedAccount is the
// account number that originOf derives from the video's id. If a request gives the video another author, derivedAccount and the counts stay
// the same.
func (w *World) growthCurve(p link.Platform, id string, derivedAccount uint32, c Category) curve {
	scale := rng{w.accountKey("scale", p, derivedAccount)}
	median := scale.logUniform(1_500, 300_000)
	d := rng{hashTexts(w.seed, "curve", string(p), id)}
	v := curve{
		final:     min(max(median*math.Exp(0.9*d.normalFloat()), 500), 5e7),
		tau:       d.logUniform(6*3600, 5*day),
		beta:      d.floatBetween(0.35, 1.1),
		phases:    [2]float64{d.floatBetween(0, 2*math.Pi), d.floatBetween(0, 2*math.Pi)},
		likes:     d.logUniform(0.02, 0.11),
		comments:  d.logUniform(0.0008, 0.009),
		shares:    d.logUniform(0.001, 0.015),
		bookmarks: d.logUniform(0.002, 0.025),
	}
	if c == Viral {
		v.late = true
		v.final = min(median*d.logUniform(25, 150), 4e8)
		v.burstAt = d.floatBetween(2, 30) * day
		v.burstLen = d.floatBetween(0.15, 0.8) * day
	}
	return v
}

// fractionOfFinalViews returns the fraction of the final views that a video has reached at the given age in seconds. It grows from 0 towards
// 1. The age is rounded down to whole minutes, so that rounding errors never make the fraction fall.
func (c curve) fractionOfFinalViews(age int64) float64 {
	if age < 60 {
		return 0
	}
	a := addWaves(float64(age/60*60), c.phases)
	slow := 1 - math.Pow(1+a/c.tau, -c.beta)
	if !c.late {
		return slow
	}
	start := logistic(-c.burstAt / c.burstLen)
	burst := (logistic((a-c.burstAt)/c.burstLen) - start) / (1 - start)
	return 0.1*slow + 0.9*burst
}

// addWaves takes the age of a video in seconds, and returns the sum of the age, a daily wave and a weekly wave. The views are computed from
// this sum. So the views grow faster at some hours and days than at others. The sum always increases with the age.
func addWaves(age float64, phases [2]float64) float64 {
	daily, weekly := 2*math.Pi/day, 2*math.Pi/(7*day)
	return age +
		0.35/daily*(math.Sin(daily*age+phases[0])-math.Sin(phases[0])) +
		0.55/weekly*(math.Sin(weekly*age+phases[1])-math.Sin(phases[1]))
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Counts are the counts of a video at one time. A count that the platform does not show is nil. Only TikTok and Facebook show shares, and
// only TikTok shows bookmarks. Hidden likes are nil. Comments that are turned off are nil on YouTube and 0 on the other platforms.
type Counts struct {
	Views     int64  `json:"views"`
	Likes     *int64 `json:"likes"`
	Comments  *int64 `json:"comments"`
	Shares    *int64 `json:"shares"`
	Bookmarks *int64 `json:"bookmarks"`
}

// countsAt returns the counts that the video has at the given Unix time in seconds. Counts are at least 1, except comments that are turned
// off. The views are greater than the sum of the other counts.
func (v *video) countsAt(at int64) Counts {
	views := v.curve.final * v.curve.fractionOfFinalViews(at-v.uploaded)
	if v.category == Falling && at >= v.changesAt {
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
		// If comments are turned off, YouTube returns no number of comments. All other platforms return 0.
		c.Comments = nil
		if v.platform != link.YouTube {
			c.Comments = new(int64)
		}
	}
	return c
}

// decimalText returns a count as decimal digits, as YouTube's API does.
func decimalText(n int64) string { return strconv.FormatInt(n, 10) }
