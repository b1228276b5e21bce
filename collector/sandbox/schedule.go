package sandbox

import (
	"strconv"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

const (
	day = 24 * 60 * 60 // length of a day in seconds

	// block is the time between two anchors, in seconds. Some data are not contained in an id, such as the upload time of a YouTube video or
	// the number of an account's videos. These data are computed backwards from a fixed time, the anchor. The last anchor is epoch, so these
	// data never change after epoch. If the clock is before epoch, an earlier anchor is used, with other upload times.
	block = 400 * day
	// maxUploads is the largest number of an account's uploads. It is limited by the 11 bits for the index in Facebook ids.
	maxUploads = 1 << 11
)

var epoch = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC).Unix()

// anchor returns the anchor for a time, as a Unix time in seconds.
func anchor(at time.Time) int64 {
	if behind := epoch - at.Unix(); behind > 0 {
		return epoch - (behind+block-1)/block*block
	}
	return epoch
}

// schedule is the upload schedule of an account. The account uploads 5 to 50 videos before the anchor, and further videos at the same rate:
// one every 1.5 to 20 days.
type schedule struct {
	start, interval int64
	key             uint64
}

func (w *World) schedule(p link.Platform, account uint32, at time.Time) schedule {
	key := w.accountKey("schedule", p, account)
	d := rng{key}
	interval := int64(d.logBetween(1.5, 20) * day)
	before := int64(d.between(5, 51))
	return schedule{start: anchor(at) - before*interval, interval: interval, key: key}
}

// upload returns the Unix time of the upload with the given index, which counts from 0. Each upload is inside a separate interval, so
// uploads are in order.
func (s schedule) upload(index int64) int64 {
	jitter := int64(mix(s.key+uint64(index)) % uint64(s.interval*4/5))
	return s.start + index*s.interval + jitter
}

// uploaded returns the number of uploads until a Unix time.
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

// hasUploadAt returns true if there is an upload in the given second.
func (s schedule) hasUploadAt(second int64) bool {
	if second < s.start {
		return false
	}
	index := (second - s.start) / s.interval
	return index < maxUploads && s.upload(index) == second
}

func (w *World) accountKey(facet string, p link.Platform, account uint32) uint64 {
	return hash(w.seed, facet, string(p), strconv.FormatUint(uint64(account), 10))
}
