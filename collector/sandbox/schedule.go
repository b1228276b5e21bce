package sandbox

import (
	"strconv"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

const (
	day = 24 * 60 * 60 // length of a day in seconds

	// anchorInterval is the number of seconds between two anchors: see anchorTimeFor. If a video id contains no upload time, the sandbox
	// chooses a random upload time in the interval before an anchor.
	anchorInterval = 400 * day
	// maxUploads is the largest number of uploads of an account. It is 2^11, because Facebook ids have 11 bits for the index of an upload.
	maxUploads = 1 << 11
)

// epoch is 1 October 2026 as a Unix time in seconds. It is the usual anchor: see anchorTimeFor.
var epoch = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC).Unix()

// anchorTimeFor returns the latest anchor that the sandbox's clock has reached, as a Unix time in seconds. The last anchor is epoch. Before
// epoch, there is one anchor every anchorInterval seconds.
func anchorTimeFor(clockTime time.Time) int64 {
	if behind := epoch - clockTime.Unix(); behind > 0 {
		return epoch - (behind+anchorInterval-1)/anchorInterval*anchorInterval
	}
	return epoch
}

// schedule is the upload schedule of an account. The account uploads 5 to 50 videos before the anchor (usually epoch), and further videos
// at the same rate: one every 1.5 to 20 days.
type schedule struct {
	start    int64 // Unix time in seconds at which the schedule begins; the first upload is at most one interval later
	interval int64 // average time between two uploads in seconds
	key      uint64
}

// generateUploadSchedule returns the upload schedule of the account with the given number. From epoch on, the schedule does not depend on the
// clock. If the clock is set to a time before epoch, the account gets another schedule.
func (w *World) generateUploadSchedule(p link.Platform, account uint32, clockTime time.Time) schedule {
	key := w.accountKey("schedule", p, account)
	d := rng{key}
	interval := int64(d.logUniform(1.5, 20) * day)
	before := int64(d.floatBetween(5, 51))
	return schedule{start: anchorTimeFor(clockTime) - before*interval, interval: interval, key: key}
}

// uploadTime returns the Unix time in seconds of the upload with the given index, counted from 0. Each upload has a random time inside its own
// interval, so an upload with a higher index is always later.
func (s schedule) uploadTime(index int64) int64 {
	jitter := int64(mixBits(s.key+uint64(index)) % uint64(s.interval*4/5))
	return s.start + index*s.interval + jitter
}

// countUploads returns how many videos the account has uploaded by the given Unix time in seconds.
func (s schedule) countUploads(at int64) int64 {
	if at < s.start {
		return 0
	}
	index := (at - s.start) / s.interval
	if s.uploadTime(index) <= at {
		index++
	}
	return min(index, maxUploads)
}

// hasUploadAt returns true if the account uploaded a video in the given second of Unix time.
func (s schedule) hasUploadAt(second int64) bool {
	if second < s.start {
		return false
	}
	index := (second - s.start) / s.interval
	return index < maxUploads && s.uploadTime(index) == second
}

// accountKey returns the seed of the random numbers for one property of an account.
func (w *World) accountKey(propertyName string, p link.Platform, account uint32) uint64 {
	return hashTexts(w.seed, propertyName, string(p), strconv.FormatUint(uint64(account), 10))
}
