package sandbox

import (
	"strconv"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

const (
	day = 24 * 60 * 60 // length of a day in seconds

	// anchorInterval is the time in seconds between two anchors: see anchorTimeFor.
	anchorInterval = 400 * day
	// maxUploads is the largest number of uploads of an account. It is 2^11, because Facebook ids have 11 bits for the index of an upload.
	maxUploads = 1 << 11
)

// epoch is 1 October 2026 as a Unix time in seconds. It is the usual anchor: see anchorTimeFor.
var epoch = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC).Unix()

// anchorTimeFor returns the latest anchor at or before clockTime, in Unix seconds. The last anchor is the
// constant time `epoch`. Earlier anchors have a distance of anchorInterval seconds.
func anchorTimeFor(clockTime time.Time) int64 {
	if behind := epoch - clockTime.Unix(); behind > 0 {
		return epoch - (behind+anchorInterval-1)/anchorInterval*anchorInterval
	}
	return epoch
}

// schedule is the upload schedule of an account. It has 5 to 50 uploads before its anchor (see
// anchorTimeFor), and continues at the same rate.
type schedule struct {
	start    int64 // Unix time in seconds at which the schedule begins; the first upload is at most one interval later
	interval int64 // average time between two uploads in seconds: 1.5 to 20 days
	key      uint64
}

// generateUploadSchedule returns the upload schedule of an account. The schedule depends on
// clockTime only if clockTime is before epoch.
func (w *World) generateUploadSchedule(p link.Platform, account uint32, clockTime time.Time) schedule {
	key := w.accountKey("schedule", p, account)
	d := rng{key}
	interval := int64(d.logUniform(1.5, 20) * day)
	before := int64(d.floatBetween(5, 51))
	return schedule{start: anchorTimeFor(clockTime) - before*interval, interval: interval, key: key}
}

// uploadTime returns the Unix time in seconds of the upload with the given index, counted from 0.
func (s schedule) uploadTime(index int64) int64 {
	// The jitter is less than 4/5 of the interval, so an upload with a higher index is always later.
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
