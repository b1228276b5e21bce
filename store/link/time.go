package link

import (
	"strconv"
	"strings"
	"time"
)

// idEpoch is a Unix time in milliseconds. The time in an Instagram id is the number of milliseconds since idEpoch.
const idEpoch = 1314220021721

// oldestUpload is a time before the first upload to TikTok or Instagram. An earlier time in an id is not an upload time.
var oldestUpload = time.Date(2010, time.January, 1, 0, 0, 0, 0, time.UTC)

// UploadTime returns when the upload of a TikTok or Instagram video began, in UTC. The video can
// become public days later. UploadTime returns false if the id contains no time.
func UploadTime(l Link) (time.Time, bool) {
	if l.Kind != Video {
		return time.Time{}, false
	}
	var t time.Time
	switch l.Platform {
	case TikTok:
		n, err := strconv.ParseUint(l.ID, 10, 64)
		if err != nil {
			return time.Time{}, false
		}
		t = time.Unix(int64(n>>32), 0).UTC()
	case Instagram:
		n, ok := shortcodeNumber(l.ID)
		if !ok {
			return time.Time{}, false
		}
		t = time.UnixMilli(int64(n>>23) + idEpoch).UTC()
	default:
		return time.Time{}, false
	}
	if t.Before(oldestUpload) {
		return time.Time{}, false
	}
	return t, true
}

// shortcodeNumber decodes an Instagram code as a number in base 64. It returns false if the code is
// invalid or the number exceeds 64 bits.
func shortcodeNumber(code string) (n uint64, ok bool) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := range len(code) {
		digit := strings.IndexByte(alphabet, code[i])
		if digit < 0 || n >= 1<<58 {
			return 0, false
		}
		n = n<<6 | uint64(digit)
	}
	return n, code != ""
}
