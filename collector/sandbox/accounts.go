package sandbox

import (
	"encoding/base64"
	"encoding/binary"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/reeltally/reeltally/store/link"
)

// identity is the number, handle and id of an account. The account's data are derived from its
// number. A generated handle or id contains the number.
type identity struct {
	platform link.Platform
	number   uint32
	handle   string // the handle in lower case, without "@"
	id       string // the id of the account on its platform
}

// externalNames has the handle and the id that replace the generated ones of an account. They come from a request for the account, or the handle comes
// from a rename. An empty field means that the generated handle or id is used.
type externalNames struct{ handle, id string }

type accountRef struct {
	platform link.Platform
	number   uint32
}

type videoRef struct {
	platform link.Platform
	id       string
}

// maxRemembered limits the memory of World. The limit applies to the stored names of accounts, and
// to the stored authors of videos. Requests beyond the limit are answered as usual.
const maxRemembered = 200_000

var (
	tiktokHandle    = regexp.MustCompile(`^[a-z0-9_.]{1,23}[a-z0-9_]$`)
	instagramHandle = regexp.MustCompile(`^[a-z0-9_.]{1,30}$`)
	facebookHandle  = regexp.MustCompile(`^[a-z0-9.-]{2,60}$`)
	channelPattern  = regexp.MustCompile(`^UC[A-Za-z0-9_-]{21}[AQgw]$`)
	digits          = regexp.MustCompile(`^[0-9]{1,20}$`)
)

// normalizeHandle returns a handle in lower case, without surrounding blanks and without a leading "@". It returns false if the platform
// does not allow such a handle.
func normalizeHandle(p link.Platform, handle string) (folded string, ok bool) {
	handle = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(handle), "@"))
	switch p {
	case link.TikTok:
		return handle, tiktokHandle.MatchString(handle)
	case link.Instagram:
		return handle, instagramHandle.MatchString(handle)
	case link.Facebook:
		return handle, facebookHandle.MatchString(handle)
	case link.YouTube:
		length := 0
		for _, r := range handle {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) && !strings.ContainsRune("_-.·", r) {
				return "", false
			}
			length++
		}
		return handle, length >= 3 && length <= 30
	}
	return "", false
}

// accountByHandle returns the account with the given handle. It returns false if the handle is not
// valid, or if a rename has left the handle without an account.
func (w *World) accountByHandle(p link.Platform, handle string) (identity, bool) {
	name, suffix, suffixed := strings.Cut(handle, "~")
	folded, ok := normalizeHandle(p, name)
	if !ok || suffixed && p != link.Facebook {
		return identity{}, false
	}
	// A Facebook handle of the form "name~ID" contains the id of the account.
	if suffixed {
		number, own := w.accountNumberFromID(p, suffix)
		if !own {
			return identity{}, false
		}
		w.storeExternalName(accountRef{p, number}, externalNames{handle: folded})
		return w.accountByNumber(p, number), true
	}
	if to, passed := w.ownerAfterRename(p, folded); passed {
		return w.accountByNumber(p, to.number), !to.unused
	}
	number, own := accountNumberFromHandle(p, folded)
	if !own {
		number = uint32(hashTexts(w.seed, "handle", string(p), folded))
		w.storeExternalName(accountRef{p, number}, externalNames{handle: folded})
	}
	return w.accountByNumber(p, number), true
}

// accountByID returns the account with the given id (a channel id or a numeric id) on a platform. It returns false if the id is not valid.
func (w *World) accountByID(p link.Platform, id string) (identity, bool) {
	if p == link.YouTube && !channelPattern.MatchString(id) || p != link.YouTube && !digits.MatchString(id) {
		return identity{}, false
	}
	number, own := w.accountNumberFromID(p, id)
	if !own {
		number = uint32(hashTexts(w.seed, "account id", string(p), id))
		w.storeExternalName(accountRef{p, number}, externalNames{id: id})
	}
	return w.accountByNumber(p, number), true
}

// accountByNumber returns the account with the given number. A handle or id that World has stored
// for the account replaces the generated value.
func (w *World) accountByNumber(p link.Platform, number uint32) identity {
	found := identity{platform: p, number: number, handle: generateHandle(p, number), id: w.generateAccountID(p, number)}
	w.mu.RLock()
	known := w.names[accountRef{p, number}]
	w.mu.RUnlock()
	if known.handle != "" {
		found.handle = known.handle
	}
	if known.id != "" {
		found.id = known.id
	}
	return found
}

// storeExternalName stores the handle or the id with which a request asked for an account. If World already has
// the names of maxRemembered accounts, it stores no names of other accounts.
func (w *World) storeExternalName(ref accountRef, names externalNames) {
	// A generated handle is not stored, because accountByNumber can compute it.
	if own, ok := accountNumberFromHandle(ref.platform, names.handle); ok && own == ref.number {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	known, ok := w.names[ref]
	if !ok && len(w.names) >= maxRemembered {
		return
	}
	if names.handle != "" {
		known.handle = names.handle
	}
	if names.id != "" {
		known.id = names.id
	}
	w.names[ref] = known
}

// Handle returns the generated handle of the account with the given number.
func (w *World) Handle(p link.Platform, number uint32) string { return generateHandle(p, number) }

// AssignAuthor makes the account with the given handle the author of a video. It returns false if
// the id is not valid or no account has the handle.
func (w *World) AssignAuthor(p link.Platform, id, handle string) bool {
	owner, ok := w.accountByHandleOrID(p, handle)
	if !ok || !validID(p, id) {
		return false
	}
	// If the handle is the old or the new handle of a renamed account, it is not certain which account is meant.
	// Then the author stays unchanged.
	if folded, _ := normalizeHandle(p, handle); folded != "" {
		if _, passed := w.ownerAfterRename(p, folded); passed {
			return true
		}
	}
	w.setAuthor(p, id, owner)
	return true
}

// setAuthor makes an account the author of the video with the given id. It stores no author for a further video if World already has the
// authors of maxRemembered videos.
func (w *World) setAuthor(p link.Platform, id string, owner identity) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := videoRef{p, id}
	if _, ok := w.owners[ref]; ok || len(w.owners) < maxRemembered {
		w.owners[ref] = owner.number
	}
}

// authorOf returns the author of the video with the given id. If setAuthor has set no author, the
// author is the account with the number derived.account.
func (w *World) authorOf(p link.Platform, id string, derived origin) identity {
	w.mu.RLock()
	number, claimed := w.owners[videoRef{p, id}]
	w.mu.RUnlock()
	if !claimed {
		number = derived.account
	}
	return w.accountByNumber(p, number)
}

const suffixAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

// handleSeparator returns the character before the last four characters of a generated handle, such as the "_" in "mellowbaker_k3f9".
func handleSeparator(p link.Platform) string {
	if p == link.Facebook {
		return "." // a Facebook handle cannot contain an underscore
	}
	return "_"
}

// generateHandle returns the handle that the sandbox generates for an account number: two words and four letters or digits, such as
// "mellowbaker_k3f9".
func generateHandle(p link.Platform, number uint32) string {
	var suffix [4]byte
	for i, rest := len(suffix)-1, number; i >= 0; i, rest = i-1, rest>>5 {
		suffix[i] = suffixAlphabet[rest&31]
	}
	return adjectives[number>>26] + nouns[number>>20&63] + handleSeparator(p) + string(suffix[:])
}

// accountNumberFromHandle returns the account number in a generated handle. It returns false if the sandbox did not generate the handle.
func accountNumberFromHandle(p link.Platform, handle string) (uint32, bool) {
	cut := len(handle) - 5
	if cut <= 0 || handle[cut:cut+1] != handleSeparator(p) {
		return 0, false
	}
	var low uint32
	for i := cut + 1; i < len(handle); i++ {
		at := strings.IndexByte(suffixAlphabet, handle[i])
		if at < 0 {
			return 0, false
		}
		low = low<<5 | uint32(at)
	}
	for a, adjective := range adjectives {
		noun, ok := strings.CutPrefix(handle[:cut], adjective)
		if !ok {
			continue
		}
		for n, candidate := range nouns {
			if candidate == noun {
				return uint32(a)<<26 | uint32(n)<<20 | low, true
			}
		}
	}
	return 0, false
}

// numericIDs is the format of numeric account ids: base + (the account's number << checkBits | check value). The check value shows whether
// the sandbox generated the id.
type numericIDs struct {
	base      uint64
	checkBits uint // number of bits of the check value
}

// accountIDs returns the format of the numeric account ids of a platform.
func accountIDs(p link.Platform) numericIDs {
	switch p {
	case link.TikTok:
		return numericIDs{6_800_000_000_000_000_000, 27} // TikTok: ids with 19 digits
	case link.Facebook:
		return numericIDs{100_000_000_000_000, 14} // Facebook: ids with 15 digits, like the ids of new profiles
	default:
		return numericIDs{0, 4} // Instagram: ids with up to 11 digits
	}
}

// accountIDChecksum returns the checksum in a generated account id. The sandbox recognises its own ids by this checksum. The parameter bits
// is the length of the checksum.
func (w *World) accountIDChecksum(p link.Platform, number uint32, bits uint) uint64 {
	return w.accountKey("id check", p, number) & (1<<bits - 1)
}

// generateAccountID returns the account id that the sandbox generates for an account number.
func (w *World) generateAccountID(p link.Platform, number uint32) string {
	if p == link.YouTube {
		key := hashTexts(w.seed, "channel")
		first := encryptNumber(uint64(number)<<32|w.accountIDChecksum(p, number, 32), 64, key)
		raw := binary.BigEndian.AppendUint64(nil, first)
		raw = binary.BigEndian.AppendUint64(raw, mixBits(first^key))
		return "UC" + base64.RawURLEncoding.EncodeToString(raw)
	}
	ids := accountIDs(p)
	return strconv.FormatUint(ids.base+(uint64(number)<<ids.checkBits|w.accountIDChecksum(p, number, ids.checkBits)), 10)
}

// accountNumberFromID returns the account number in a generated account id. It returns false if the sandbox did not generate the id.
func (w *World) accountNumberFromID(p link.Platform, id string) (uint32, bool) {
	var number uint32
	if p == link.YouTube {
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(id, "UC"))
		if err != nil || len(raw) != 16 {
			return 0, false
		}
		number = uint32(decryptNumber(binary.BigEndian.Uint64(raw), 64, hashTexts(w.seed, "channel")) >> 32)
	} else {
		ids := accountIDs(p)
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil || n < ids.base {
			return 0, false
		}
		number = uint32((n - ids.base) >> ids.checkBits)
	}
	return number, w.generateAccountID(p, number) == id
}

// secUID returns the sec_uid of a TikTok account, a text of 76 characters. TikTok identifies each account by a number and a sec_uid.
func (w *World) secUID(i identity) string {
	d := rng{w.accountKey("sec uid", i.platform, i.number)}
	var out strings.Builder
	out.WriteString("MS4wLjABAAAA")
	for range 64 {
		out.WriteByte(instagramAlphabet[d.intBelow(64)])
	}
	return out.String()
}

// uploadedIDs returns the ids of all videos that an account had uploaded by the given time, newest first. It includes private and deleted videos. An
// account of the category AccountEmpty has none.
func (w *World) uploadedIDs(i identity, at time.Time) []string {
	if w.accountCategory(i.platform, i.number) == AccountEmpty {
		return nil
	}
	s := w.generateUploadSchedule(i.platform, i.number, at)
	var list []string
	for index := s.countUploads(at.Unix()) - 1; index >= 0; index-- {
		list = append(list, w.uploadID(i.platform, i.number, index, s.uploadTime(index)))
	}
	return list
}

// accountCategory returns the category of the account with the given number. It depends only on the seed and the number.
func (w *World) accountCategory(p link.Platform, number uint32) AccountCategory {
	return pickCategory(accountCategoryFrequencies(p), rng{w.accountKey("account category", p, number)}, AccountNormal)
}
