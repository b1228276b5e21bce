package sandbox

import (
	"encoding/base64"
	"encoding/binary"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

// These are the formats of the platforms' video ids.
var (
	tiktokPattern    = regexp.MustCompile(`^[1-9][0-9]{14,19}$`)
	instagramPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{5,40}$`)
	youtubePattern   = regexp.MustCompile(`^[A-Za-z0-9_-]{10}[048AEIMQUYcgkosw]$`)
	facebookPattern  = regexp.MustCompile(`^[1-9][0-9]{8,16}$`)
)

// validID returns true if a video of the platform can have the id.
func validID(p link.Platform, id string) bool {
	switch p {
	case link.TikTok:
		return tiktokPattern.MatchString(id)
	case link.Instagram:
		return instagramPattern.MatchString(id)
	case link.YouTube:
		return youtubePattern.MatchString(id)
	case link.Facebook:
		return facebookPattern.MatchString(id)
	}
	return false
}

const (
	instagramAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	instagramEpoch    = 1314220021721 // Unix time in milliseconds from which the times in shortcodes are counted
	// instagramPrivateTail is the number of characters that Instagram appends to the shortcode of a private account's post.
	instagramPrivateTail = 28

	facebookBase = 1_000_000_000_000_000 // smallest generated Facebook video id; every generated id has sixteen digits and is below 2^53
	// tiktokSince and instagramSince are the earliest upload times that an id can contain, as Unix
	// times in seconds. originOf ignores earlier times.
	tiktokSince    = 1388534400 // 1 January 2014, before TikTok existed
	instagramSince = 1314220021 // 24 August 2011, which is instagramEpoch
)

// origin has the data that are derived from a video id: the number of the author's account and the upload time.
type origin struct {
	account  uint32
	uploaded int64 // Unix time in seconds; 0 if the id contains no time
}

// originOf returns the origin of a valid video id. The parameter "at" is the current time.
func (w *World) originOf(p link.Platform, id string, at time.Time) origin {
	// byHash is the result if the id contains no upload time, or an upload time in the future.
	byHash := origin{account: uint32(hashTexts(w.seed, "owner", string(p), id))}
	switch p {
	case link.TikTok:
		n, err := strconv.ParseUint(id, 10, 64)
		uploaded := int64(n >> 32)
		if err != nil || uploaded < tiktokSince || uploaded > at.Unix() {
			return byHash
		}
		return origin{uint32(decryptNumber(n&0xffffffff, 32, w.idEncryptionKey(p, uploaded))), uploaded}
	case link.Instagram:
		n, ok := decodeShortcode(publicShortcode(id))
		ms := int64(n>>23) + instagramEpoch
		uploaded := ms / 1000
		if !ok || uploaded < instagramSince || uploaded > at.Unix() {
			return byHash
		}
		encrypted := uint64(ms%1000)&0x1ff<<23 | n&0x7fffff
		return origin{uint32(decryptNumber(encrypted, 32, w.idEncryptionKey(p, uploaded))), uploaded}
	case link.YouTube:
		// YouTube and Facebook ids contain an upload time only if uploadID generated the ids.
		raw, err := base64.RawURLEncoding.DecodeString(id)
		if err != nil || len(raw) != 8 {
			return byHash
		}
		n := decryptNumber(binary.BigEndian.Uint64(raw), 64, hashTexts(w.seed, "id", string(p)))
		account, uploaded := uint32(n>>32), int64(uint32(n))
		if uploaded <= at.Unix() && w.generateUploadSchedule(p, account, at).hasUploadAt(uploaded) {
			return origin{account, uploaded}
		}
	case link.Facebook:
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil || n < facebookBase || n-facebookBase >= 1<<51 {
			return byHash
		}
		account, index, ok := w.unpackFacebookID(n - facebookBase)
		if uploaded := w.generateUploadSchedule(p, account, at).uploadTime(index); ok && uploaded <= at.Unix() {
			return origin{account, uploaded}
		}
	}
	return byHash
}

// uploadID returns the id of a video, from which originOf finds the account and the upload time. The oldest
// upload of an account has the index 0. uploadTime is a Unix time in seconds.
func (w *World) uploadID(p link.Platform, account uint32, index, uploadTime int64) string {
	switch p {
	case link.TikTok:
		low := encryptNumber(uint64(account), 32, w.idEncryptionKey(p, uploadTime))
		return strconv.FormatUint(uint64(uploadTime)<<32|low, 10)
	case link.Instagram:
		encrypted := encryptNumber(uint64(account), 32, w.idEncryptionKey(p, uploadTime))
		ms := uint64(uploadTime*1000) + encrypted>>23 - instagramEpoch
		return encodeShortcode(ms<<23 | encrypted&0x7fffff)
	case link.YouTube:
		n := encryptNumber(uint64(account)<<32|uint64(uint32(uploadTime)), 64, hashTexts(w.seed, "id", string(p)))
		return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, n))
	default:
		return strconv.FormatUint(facebookBase+w.packFacebookID(account, index), 10)
	}
}

// idEncryptionKey returns the key that encrypts the account number in a TikTok or Instagram id. The
// parameter "second" is the Unix time of the upload.
func (w *World) idEncryptionKey(p link.Platform, second int64) uint64 {
	// Each upload time has its own key, so that the ids of one account look unrelated.
	return mixBits(hashTexts(w.seed, "id", string(p)) + uint64(second))
}

// packFacebookID returns a number of 51 bits for the id of a Facebook video. The number contains the account,
// the index and a check value, by which unpackFacebookID recognises it.
func (w *World) packFacebookID(account uint32, index int64) uint64 {
	key := hashTexts(w.seed, "id", string(link.Facebook))
	// 32 bits are the account number, 11 bits the index, and 8 bits the check value.
	low := uint64(index)<<8 | mixBits(key^uint64(account)<<16^uint64(index))&0xff
	return uint64(account)<<19 | low ^ mixBits(key+uint64(account))&0x7ffff
}

// unpackFacebookID returns the account number and the upload index that packFacebookID has put into
// n. ok is false if the check value is wrong.
func (w *World) unpackFacebookID(n uint64) (account uint32, index int64, ok bool) {
	key := hashTexts(w.seed, "id", string(link.Facebook))
	account = uint32(n >> 19)
	low := n&0x7ffff ^ mixBits(key+uint64(account))&0x7ffff
	index = int64(low >> 8)
	return account, index, low&0xff == mixBits(key^uint64(account)<<16^uint64(index))&0xff
}

// publicShortcode returns a shortcode without the characters that Instagram appends for a private account. It returns other shortcodes
// unchanged.
func publicShortcode(code string) string {
	if len(code) > instagramPrivateTail+5 {
		return code[:len(code)-instagramPrivateTail]
	}
	return code
}

// decodeShortcode returns the number that a shortcode encodes. It returns false if the code has another character than those of
// instagramAlphabet, or if the number does not fit into 64 bits.
func decodeShortcode(code string) (uint64, bool) {
	if len(code) > 11 {
		return 0, false
	}
	var n uint64
	for i := range len(code) {
		digit := strings.IndexByte(instagramAlphabet, code[i])
		if digit < 0 || n >= 1<<58 {
			return 0, false
		}
		n = n<<6 | uint64(digit)
	}
	return n, true
}

// encodeShortcode returns the Instagram shortcode that encodes a number.
func encodeShortcode(n uint64) string {
	var digits [11]byte
	at := len(digits)
	for n > 0 {
		at--
		digits[at] = instagramAlphabet[n&63]
		n >>= 6
	}
	return string(digits[at:])
}
