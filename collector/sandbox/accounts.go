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

// identity is an account's number with the names under which a platform knows it. The number decides everything about the
// account; its own handle and id can be read back into the number.
type identity struct {
	platform link.Platform
	number   uint32
	handle   string // folded, without "@"
	id       string // the platform's own
}

// foreign are names that a request brought, of an account whose number is a hash of them.
type foreign struct{ handle, id string }

type accountRef struct {
	platform link.Platform
	number   uint32
}

type videoRef struct {
	platform link.Platform
	id       string
}

// The world remembers this many foreign names and claimed videos; more are answered, yet not remembered.
const maxRemembered = 200_000

var (
	tiktokHandle    = regexp.MustCompile(`^[a-z0-9_.]{1,23}[a-z0-9_]$`)
	instagramHandle = regexp.MustCompile(`^[a-z0-9_.]{1,30}$`)
	facebookHandle  = regexp.MustCompile(`^[a-z0-9.-]{2,60}$`)
	channelShape    = regexp.MustCompile(`^UC[A-Za-z0-9_-]{21}[AQgw]$`)
	digits          = regexp.MustCompile(`^[0-9]{1,20}$`)
)

// foldHandle gives a handle's one spelling, false when no account can have it.
func foldHandle(p link.Platform, handle string) (string, bool) {
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

// byHandle finds the account of a handle; false only for what cannot be a handle, or was given up. A Facebook handle may bear the suffix
// "~id", and then the id decides.
func (w *World) byHandle(p link.Platform, handle string) (identity, bool) {
	name, suffix, suffixed := strings.Cut(handle, "~")
	folded, ok := foldHandle(p, name)
	if !ok || suffixed && p != link.Facebook {
		return identity{}, false
	}
	if suffixed {
		number, own := w.numberOfID(p, suffix)
		if !own {
			return identity{}, false
		}
		w.remember(accountRef{p, number}, foreign{handle: folded})
		return w.byNumber(p, number), true
	}
	if to, passed := w.hasPassed(p, folded); passed {
		return w.byNumber(p, to.number), !to.nobody
	}
	number, own := numberOfHandle(p, folded)
	if !own {
		number = uint32(keyed(w.seed, "handle", string(p), folded))
		w.remember(accountRef{p, number}, foreign{handle: folded})
	}
	return w.byNumber(p, number), true
}

// byID finds the account of a platform's own id (a channel id, a numeric id); false when it has not that shape.
func (w *World) byID(p link.Platform, id string) (identity, bool) {
	if p == link.YouTube && !channelShape.MatchString(id) || p != link.YouTube && !digits.MatchString(id) {
		return identity{}, false
	}
	number, own := w.numberOfID(p, id)
	if !own {
		number = uint32(keyed(w.seed, "account id", string(p), id))
		w.remember(accountRef{p, number}, foreign{id: id})
	}
	return w.byNumber(p, number), true
}

func (w *World) byNumber(p link.Platform, number uint32) identity {
	found := identity{platform: p, number: number, handle: handleOfNumber(p, number), id: w.idOfNumber(p, number)}
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

func (w *World) remember(ref accountRef, names foreign) {
	if own, ok := numberOfHandle(ref.platform, names.handle); ok && own == ref.number {
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

// Handle is the handle that the world itself gives to the account of a number. Such an account is found by its handle and by
// its id without any memory; its neighbours are as different as any other two.
func (w *World) Handle(p link.Platform, number uint32) string { return handleOfNumber(p, number) }

// Claim makes the account of a handle the author of a video, as a request with a link that names both does. It brings back,
// at the start of a process, what an earlier one had been told. False, and nothing done, when either has the wrong shape. A handle
// that has changed hands says nothing.
func (w *World) Claim(p link.Platform, id, handle string) bool {
	owner, ok := w.identify(p, handle)
	if !ok || !validID(p, id) {
		return false
	}
	if folded, _ := foldHandle(p, handle); folded != "" {
		if _, passed := w.hasPassed(p, folded); passed {
			return true // who bears it now says nothing of whose the video is
		}
	}
	w.claim(p, id, owner)
	return true
}

func (w *World) claim(p link.Platform, id string, owner identity) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := videoRef{p, id}
	if _, ok := w.owners[ref]; ok || len(w.owners) < maxRemembered {
		w.owners[ref] = owner.number
	}
}

func (w *World) owner(p link.Platform, id string, by origin) identity {
	w.mu.RLock()
	number, claimed := w.owners[videoRef{p, id}]
	w.mu.RUnlock()
	if !claimed {
		number = by.account
	}
	return w.byNumber(p, number)
}

const suffixAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

func handleSeparator(p link.Platform) string {
	if p == link.Facebook {
		return "." // a Facebook name has no underscore
	}
	return "_"
}

// handleOfNumber spells a number as two words and four letters, e.g. "mellowbaker_k3f9".
func handleOfNumber(p link.Platform, number uint32) string {
	var suffix [4]byte
	for i, rest := len(suffix)-1, number; i >= 0; i, rest = i-1, rest>>5 {
		suffix[i] = suffixAlphabet[rest&31]
	}
	return adjectives[number>>26] + nouns[number>>20&63] + handleSeparator(p) + string(suffix[:])
}

func numberOfHandle(p link.Platform, handle string) (uint32, bool) {
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

// Ids of accounts, as numbers: a base, then the account with a check behind it that tells a foreign id.
type numericIDs struct {
	base      uint64
	checkBits uint
}

func accountIDs(p link.Platform) numericIDs {
	switch p {
	case link.TikTok:
		return numericIDs{6_800_000_000_000_000_000, 27} // 19 digits
	case link.Facebook:
		return numericIDs{100_000_000_000_000, 14} // 15 digits, as new profiles have
	default:
		return numericIDs{0, 4} // Instagram: up to 11 digits
	}
}

func (w *World) idCheck(p link.Platform, number uint32, bits uint) uint64 {
	return w.accountKey("id check", p, number) & (1<<bits - 1)
}

func (w *World) idOfNumber(p link.Platform, number uint32) string {
	if p == link.YouTube {
		key := keyed(w.seed, "channel")
		first := scramble(uint64(number)<<32|w.idCheck(p, number, 32), 64, key)
		raw := binary.BigEndian.AppendUint64(nil, first)
		raw = binary.BigEndian.AppendUint64(raw, mix(first^key))
		return "UC" + base64.RawURLEncoding.EncodeToString(raw)
	}
	ids := accountIDs(p)
	return strconv.FormatUint(ids.base+(uint64(number)<<ids.checkBits|w.idCheck(p, number, ids.checkBits)), 10)
}

func (w *World) numberOfID(p link.Platform, id string) (uint32, bool) {
	var number uint32
	if p == link.YouTube {
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(id, "UC"))
		if err != nil || len(raw) != 16 {
			return 0, false
		}
		number = uint32(unscramble(binary.BigEndian.Uint64(raw), 64, keyed(w.seed, "channel")) >> 32)
	} else {
		ids := accountIDs(p)
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil || n < ids.base {
			return 0, false
		}
		number = uint32((n - ids.base) >> ids.checkBits)
	}
	return number, w.idOfNumber(p, number) == id
}

// secUID is TikTok's second id of an account: 76 characters.
func (w *World) secUID(i identity) string {
	d := dice{w.accountKey("sec uid", i.platform, i.number)}
	var out strings.Builder
	out.WriteString("MS4wLjABAAAA")
	for range 64 {
		out.WriteByte(instagramAlphabet[d.below(64)])
	}
	return out.String()
}

// uploads lists the ids of an account's videos that have been uploaded by an instant, newest first, whatever became of them.
func (w *World) uploads(i identity, at time.Time) []string {
	if w.accountCategory(i.platform, i.number) == AccountEmpty {
		return nil
	}
	s := w.schedule(i.platform, i.number, at)
	var list []string
	for index := s.uploaded(at.Unix()) - 1; index >= 0; index-- {
		list = append(list, w.uploadID(i.platform, i.number, index, s.upload(index)))
	}
	return list
}

func (w *World) accountCategory(p link.Platform, number uint32) AccountCategory {
	return roll(accountShares(p), dice{w.accountKey("account category", p, number)}, AccountNormal)
}
