package sandbox

import (
	"math"
	"strconv"

	"github.com/reeltally/reeltally/store/link"
)

// curve describes how the counts of a video grow with its age.
type curve struct {
	final     float64    // the number that the views approach, but never reach
	tau, beta float64    // scale (in seconds) and exponent of the power law in fractionOfFinalViews
	late      bool       // true if most views come in one late burst
	burstAt   float64    // the video's age at the burst, in seconds
	burstLen  float64    // duration of the burst, in seconds
	phases    [2]float64 // phases of the daily and the weekly wave, in radians

	likes, comments, shares, bookmarks float64 // likes, comments, shares and bookmarks as fractions of the views
}

// growthCurve returns the random growth curve of a video. The curve depends only on the seed and
// the arguments.
func (w *World) growthCurve(p link.Platform, id string, derivedAccount uint32, c Category) curve {
	// derivedAccount follows from the id: see originOf. A request can set another author, but must not change
	// the counts, so the curve does not depend on that author.
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

// fractionOfFinalViews returns the fraction of the final views at an age in seconds. The fraction
// grows from 0 towards 1.
func (c curve) fractionOfFinalViews(age int64) float64 {
	if age < 60 {
		return 0
	}
	// The age is rounded down to whole minutes. With smaller steps, rounding errors could make the fraction
	// fall from one step to the next.
	a := addWaves(float64(age/60*60), c.phases)
	slow := 1 - math.Pow(1+a/c.tau, -c.beta)
	if !c.late {
		return slow
	}
	start := logistic(-c.burstAt / c.burstLen)
	burst := (logistic((a-c.burstAt)/c.burstLen) - start) / (1 - start)
	return 0.1*slow + 0.9*burst
}

// addWaves changes an age in seconds, so that it rises faster at some hours of the day and on some days of the
// week. The views then grow faster, too.
func addWaves(age float64, phases [2]float64) float64 {
	daily, weekly := 2*math.Pi/day, 2*math.Pi/(7*day)
	// 0.35 + 0.55 is less than 1, so the result always increases with the age.
	return age +
		0.35/daily*(math.Sin(daily*age+phases[0])-math.Sin(phases[0])) +
		0.55/weekly*(math.Sin(weekly*age+phases[1])-math.Sin(phases[1]))
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Counts are the counts of a video at one time. A count that the platform does not show is nil.
type Counts struct {
	Views     int64  `json:"views"`
	Likes     *int64 `json:"likes"`     // nil if the creator hides the likes
	Comments  *int64 `json:"comments"`  // if comments are turned off: nil on YouTube, 0 on the other platforms
	Shares    *int64 `json:"shares"`    // nil on Instagram and YouTube
	Bookmarks *int64 `json:"bookmarks"` // nil on all platforms except TikTok
}

// countsAt returns the counts of the video at a Unix time in seconds. The views exceed the sum of
// all other counts.
func (v *video) countsAt(at int64) Counts {
	views := v.curve.final * v.curve.fractionOfFinalViews(at-v.uploaded)
	if v.category == Falling && at >= v.changesAt {
		views *= 1 - v.fall
	}
	of := func(rate float64) *int64 {
		// Adding 1 keeps the count above 0.
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
		c.Comments = nil
		if v.platform != link.YouTube {
			c.Comments = new(int64)
		}
	}
	return c
}

// decimalText returns a count as decimal digits, as YouTube's API does.
func decimalText(n int64) string { return strconv.FormatInt(n, 10) }
