package sandbox

import (
	"strconv"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

const (
	day = 24 * 60 * 60 // seconds

	// The world hangs on fixed instants, block apart: what is not told by an id (when a YouTube video was uploaded, how many
	// videos an account already had) is counted back from the last of them at or before the clock. From epoch on nothing
	// ever moves again; a clock set back beyond it lives in an earlier block, whose hidden times differ.
	block = 400 * day
	// Facebook ids have 11 bits for the index of an upload.
	maxUploads = 1 << 11
)

var epoch = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC).Unix()

// anchor is the instant, in Unix seconds, from which hidden times are counted back.
func anchor(at time.Time) int64 {
	if behind := epoch - at.Unix(); behind > 0 {
		return epoch - (behind+block-1)/block*block
	}
	return epoch
}

// schedule says when an account uploads: 5 to 50 videos before the anchor, then on at the same steady rate, one in 1.5 to 20
// days, each at its own hour.
type schedule struct {
	start, interval int64
	key             uint64
}

func (w *World) schedule(p link.Platform, account uint32, at time.Time) schedule {
	key := w.accountKey("schedule", p, account)
	d := dice{key}
	interval := int64(d.logBetween(1.5, 20) * day)
	before := int64(d.between(5, 51))
	return schedule{start: anchor(at) - before*interval, interval: interval, key: key}
}

// upload is when the upload of an index (from 0) happens. Each stays inside its own interval, so that they are in order.
func (s schedule) upload(index int64) int64 {
	jitter := int64(mix(s.key+uint64(index)) % uint64(s.interval*4/5))
	return s.start + index*s.interval + jitter
}

// uploaded is how many uploads have happened by an instant.
func (s schedule) uploaded(at int64) int64 {
	if at < s.start {
		return 0
	}
	index := (at - s.start) / s.interval
	if s.upload(index) <= at {
		index++
	}
	return min(index, maxUploads)
}

// has says whether an upload happens in just this second.
func (s schedule) has(second int64) bool {
	if second < s.start {
		return false
	}
	index := (second - s.start) / s.interval
	return index < maxUploads && s.upload(index) == second
}

func (w *World) accountKey(facet string, p link.Platform, account uint32) uint64 {
	return keyed(w.seed, facet, string(p), strconv.FormatUint(uint64(account), 10))
}
