package sandbox

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store/link"
)

// testNow is the time that the clock of the sandbox returns, unless a test changes the clock.
var testNow = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func anyPlatform() *rapid.Generator[link.Platform] { return rapid.SampledFrom(link.Platforms) }

// anyID returns a generator of random valid video ids of a platform. The ids are not in the list of any generated account.
func anyID(p link.Platform) *rapid.Generator[string] {
	switch p {
	case link.TikTok:
		return rapid.Custom(func(t *rapid.T) string {
			second := rapid.Int64Range(1500000000, epoch).Draw(t, "second")
			return strconv.FormatInt(second<<32|rapid.Int64Range(0, 1<<32-1).Draw(t, "low"), 10)
		})
	case link.Instagram:
		return rapid.Custom(func(t *rapid.T) string {
			ms := rapid.Int64Range(1400000000000, epoch*1000).Draw(t, "ms")
			return encodeShortcode(uint64(ms-instagramEpoch)<<23 | rapid.Uint64Range(0, 1<<23-1).Draw(t, "low"))
		})
	case link.YouTube:
		return rapid.StringMatching(`[A-Za-z0-9_-]{10}[048AEIMQUYcgkosw]`)
	default:
		return rapid.StringMatching(`[1-9][0-9]{8,16}`)
	}
}

// anyInstant returns a generator of random times in the three years after epoch.
func anyInstant() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(epoch, epoch+3*365*day).Draw(t, "instant"), 0).UTC()
	})
}

func TestWorld_returnsSameDataForSameSeed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := anyPlatform().Draw(t, "platform")
		id := anyID(p).Draw(t, "id")
		at := anyInstant().Draw(t, "at")
		seed := rapid.Uint64().Draw(t, "seed")
		first, ok := newWorld(seed).Video(p, id, at)
		require.True(t, ok)
		again, _ := newWorld(seed).Video(p, id, at)
		require.Equal(t, first, again)
		other, _ := newWorld(seed+1).Video(p, id, at)
		require.NotEqual(t, first, other)
	})
}

func TestWorld_neverDecreasesCountsExceptInCategoryFalling(t *testing.T) {
	t.Parallel()
	w := newWorld(0)
	rapid.Check(t, func(t *rapid.T) {
		p := anyPlatform().Draw(t, "platform")
		id := anyID(p).Draw(t, "id")
		early := anyInstant().Draw(t, "early")
		late := early.Add(time.Duration(rapid.Int64Range(0, 500*day).Draw(t, "later")) * time.Second)
		before, _ := w.Video(p, id, early)
		after, _ := w.Video(p, id, late)
		require.False(t, before.UploadedAt.After(early), "the upload time must not be after the requested time")
		require.Equal(t, before.UploadedAt, after.UploadedAt)
		require.Equal(t, before.Title, after.Title)
		for _, v := range []VideoTruth{before, after} {
			rest := int64(0)
			for _, count := range []*int64{v.Likes, v.Comments, v.Shares, v.Bookmarks} {
				if count != nil {
					rest += *count
				}
			}
			require.Greater(t, v.Views, rest)
		}
		if before.Category == Falling {
			return
		}
		require.GreaterOrEqual(t, after.Views, before.Views)
		for i, count := range []*int64{before.Likes, before.Comments, before.Shares, before.Bookmarks} {
			now := []*int64{after.Likes, after.Comments, after.Shares, after.Bookmarks}[i]
			require.Equal(t, count == nil, now == nil)
			if count != nil {
				require.GreaterOrEqual(t, *now, *count)
			}
		}
	})
}

func TestWorld_moreThan97PercentOfIDsArePublicVideos(t *testing.T) {
	t.Parallel()
	w := newWorld(0)
	for _, p := range link.Platforms {
		const n = 5_000
		odd := 0
		for i := range n {
			v, ok := w.Video(p, exampleID(p, i), testNow)
			require.True(t, ok)
			require.Positive(t, v.Views)
			if v.State != Public || v.Likes == nil || v.Comments == nil || *v.Comments == 0 || v.LengthSeconds == 0 {
				odd++
			}
		}
		require.Less(t, odd, n*3/100, p)
		require.Positive(t, odd, p)
	}
}

// exampleID returns a valid video id of a platform. Each i gives a different id. No generated account has a video with this id in its list.
func exampleID(p link.Platform, i int) string {
	n := mixBits(uint64(i) + 77)
	switch p {
	case link.TikTok:
		return strconv.FormatUint((1_600_000_000+n%150_000_000)<<32|n>>32, 10)
	case link.Instagram:
		return encodeShortcode(uint64(testNow.UnixMilli()-instagramEpoch)/(2+n%7)<<23 | n&0x7fffff)
	case link.YouTube:
		return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, n))
	default:
		return strconv.FormatUint(100_000_000+n%9_900_000_000_000_000, 10)
	}
}

func TestWorld_derivesUploadTimeFromID(t *testing.T) {
	t.Parallel()
	w := newWorld(0)
	t.Run("a TikTok id, which contains the upload time", func(t *testing.T) {
		t.Parallel()
		v, ok := w.Video(link.TikTok, "7106594312292453675", testNow)
		require.True(t, ok)
		require.Equal(t, time.Unix(7106594312292453675>>32, 0).UTC(), v.UploadedAt)
	})
	t.Run("an Instagram shortcode, which contains the upload time", func(t *testing.T) {
		t.Parallel()
		n, ok := decodeShortcode("DOq6eV6iIgD")
		require.True(t, ok)
		v, ok := w.Video(link.Instagram, "DOq6eV6iIgD", testNow)
		require.True(t, ok)
		require.Equal(t, time.UnixMilli(int64(n>>23)+instagramEpoch).UTC().Truncate(time.Second), v.UploadedAt)
		require.Equal(t, 2025, v.UploadedAt.Year())
	})
	t.Run("ids without an upload time", func(t *testing.T) {
		t.Parallel()
		for _, p := range []link.Platform{link.YouTube, link.Facebook} {
			for i := range 500 {
				v, _ := w.Video(p, exampleID(p, i), testNow)
				require.Less(t, v.UploadedAt.Unix(), epoch)
				require.GreaterOrEqual(t, v.UploadedAt.Unix(), epoch-int64(anchorInterval))
			}
		}
	})
	t.Run("a clock before the epoch", func(t *testing.T) {
		t.Parallel()
		long := time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)
		for _, p := range link.Platforms {
			v, ok := w.Video(p, exampleID(p, 1), long)
			require.True(t, ok)
			require.True(t, v.UploadedAt.Before(long), "%s: %s", p, v.UploadedAt)
		}
	})
}

func TestWorld_refusesInvalidIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(0)
	for p, ids := range map[link.Platform][]string{
		link.TikTok:    {"", "123", "71065943122924536750000", "7106594312292453x75", "0106594312292453675"},
		link.Instagram: {"", "ab", "has space11", strings.Repeat("a", 41)},
		link.YouTube:   {"", "dQw4w9WgXc", "dQw4w9WgXcZ", "dQw4w9WgXcQQ", "dQw4w9WgX!Q"},
		link.Facebook:  {"", "12345678", "123456789012345678", "abc"},
		"myspace":      {"1"},
	} {
		for _, id := range ids {
			_, ok := w.Video(p, id, testNow)
			require.False(t, ok, "%s %q", p, id)
		}
	}
}

func TestWorld_listedVideosBelongToAccount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64Range(0, 3).Draw(t, "seed"))
		p := anyPlatform().Draw(t, "platform")
		handle := rapid.StringMatching(`[a-z]{3,8}[0-9]{0,3}`).Draw(t, "handle")
		at := anyInstant().Draw(t, "at")
		account, ok := w.Account(p, handle, at)
		require.True(t, ok)
		require.Equal(t, handle, account.Handle)
		uploads := w.Uploads(p, handle, at)
		require.Len(t, uploads, int(account.Videos))
		last := at
		seen := map[string]bool{}
		for _, id := range uploads {
			require.True(t, validID(p, id), id)
			require.False(t, seen[id])
			seen[id] = true
			v, ok := w.Video(p, id, at)
			require.True(t, ok)
			require.Equal(t, account.AccountName, v.Account)
			require.False(t, v.UploadedAt.After(last), "the list must be sorted newest first")
			last = v.UploadedAt
		}
		if account.Category == AccountNormal {
			require.GreaterOrEqual(t, len(uploads), 3)
		}
	})
}

func TestWorld_accountsUploadNewVideosRegularly(t *testing.T) {
	t.Parallel()
	w := newWorld(0)
	for _, p := range link.Platforms {
		for number := range uint32(300) {
			i := w.accountByNumber(p, number)
			if w.accountCategory(p, number) != AccountNormal {
				continue
			}
			now := len(w.uploadedIDs(i, time.Unix(epoch, 0)))
			require.GreaterOrEqual(t, now, 5)
			require.LessOrEqual(t, now, 51)
			later := len(w.uploadedIDs(i, time.Unix(epoch+60*day, 0)))
			require.GreaterOrEqual(t, later, now+2)
			require.LessOrEqual(t, later, now+41)
		}
	}
}

func TestWorld_findsAccountByHandleAndID(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(0)
		p := anyPlatform().Draw(t, "platform")
		number := rapid.Uint32().Draw(t, "number")
		i := w.accountByNumber(p, number)
		require.Equal(t, i.handle, w.Handle(p, number))
		again, ok := w.accountByHandle(p, "@"+strings.ToUpper(i.handle))
		require.True(t, ok)
		require.Equal(t, i, again)
		again, ok = w.accountByID(p, i.id)
		require.True(t, ok)
		require.Equal(t, i, again)
		if p == link.Facebook {
			again, ok = w.accountByHandle(p, i.handle+"~"+i.id)
			require.True(t, ok)
			require.Equal(t, i, again)
		}
		require.Empty(t, w.names, "generated names must not be stored")
	})
	t.Run("handles and ids that are not generated", func(t *testing.T) {
		t.Parallel()
		w := newWorld(0)
		first, _ := w.Account(link.YouTube, "MrBeast", testNow)
		require.Equal(t, "mrbeast", first.Handle)
		byID, _ := w.Account(link.YouTube, first.ID, testNow)
		require.Equal(t, first, byID)
		foreign, ok := w.Account(link.YouTube, "UCX6OQ3DkcsbYNE6H8uQQuVA", testNow)
		require.True(t, ok)
		require.Equal(t, "UCX6OQ3DkcsbYNE6H8uQQuVA", foreign.ID)
		byHandle, _ := w.Account(link.YouTube, foreign.Handle, testNow)
		require.Equal(t, foreign, byHandle)
	})
	t.Run("a YouTube handle in Japanese script", func(t *testing.T) {
		t.Parallel()
		account, ok := newWorld(0).Account(link.YouTube, "@東京グルメ", testNow)
		require.True(t, ok)
		require.Equal(t, "東京グルメ", account.Handle)
	})
	t.Run("invalid handles and ids", func(t *testing.T) {
		t.Parallel()
		for p, refs := range map[link.Platform][]string{
			link.TikTok: {"", "a", "ends.", "has space", "x~1"}, link.Instagram: {"", strings.Repeat("a", 31), "ü"},
			link.YouTube: {"ab", "with space", strings.Repeat("x", 31)}, link.Facebook: {"", "x", "name~12"}, "myspace": {"tom"},
		} {
			for _, ref := range refs {
				_, ok := newWorld(0).Account(p, ref, testNow)
				require.False(t, ok, "%s %q", p, ref)
			}
		}
	})
}

func TestAssignAuthor_keepsVideoDataExceptAuthor(t *testing.T) {
	t.Parallel()
	w := newWorld(0)
	before, _ := w.Video(link.TikTok, "7106594312292453675", testNow)
	require.True(t, w.AssignAuthor(link.TikTok, "7106594312292453675", "@Scout2015"))
	require.False(t, w.AssignAuthor(link.TikTok, "1", "scout2015"))
	require.False(t, w.AssignAuthor(link.TikTok, "7106594312292453675", ""))
	after, _ := w.Video(link.TikTok, "7106594312292453675", testNow)
	require.Equal(t, "scout2015", after.Account.Handle)
	require.Equal(t, before.Counts, after.Counts)
	require.Equal(t, before.State, after.State)
	require.Equal(t, before.Title, after.Title)
}

func TestWorld_findReturnsVideoAndAccountOfEveryCategory(t *testing.T) {
	t.Parallel()
	w := newWorld(0)
	for _, p := range link.Platforms {
		for _, c := range Categories(p) {
			id := w.Find(p, c)
			require.NotEmpty(t, id, "%s %s", p, c)
			require.Equal(t, id, newWorld(0).Find(p, c))
			v, ok := w.Video(p, id, testNow)
			require.True(t, ok)
			require.Equal(t, c, v.Category)
			switch c {
			case HiddenLikes:
				require.Nil(t, v.Likes)
				require.True(t, v.HiddenStats)
			case CommentsOff:
				require.Equal(t, p == link.YouTube, v.Comments == nil)
			case AgeRestricted:
				require.Equal(t, Restricted, v.State)
				require.True(t, v.NotSafe)
			case ShopAd:
				require.True(t, v.ShopAd)
				require.Regexp(t, `^1729[0-9]{15}$`, v.ShopProductID)
			case Photo, Live:
				require.Zero(t, v.LengthSeconds)
			case BecomesPrivate, BecomesDeleted:
				require.NotNil(t, v.ChangesAt)
				was, _ := w.Video(p, id, v.ChangesAt.Add(-time.Second))
				require.Equal(t, Public, was.State)
				is, _ := w.Video(p, id, *v.ChangesAt)
				require.Equal(t, map[Category]State{BecomesPrivate: Private, BecomesDeleted: Deleted}[c], is.State)
			case Falling:
				was, _ := w.Video(p, id, v.ChangesAt.Add(-time.Second))
				is, _ := w.Video(p, id, *v.ChangesAt)
				require.Less(t, is.Views, was.Views)
				later, _ := w.Video(p, id, v.ChangesAt.AddDate(0, 0, 30))
				require.GreaterOrEqual(t, later.Views, is.Views)
			}
		}
		for _, c := range AccountCategories(p) {
			handle := w.FindAccount(p, c)
			require.NotEmpty(t, handle, "%s %s", p, c)
			account, ok := w.Account(p, handle, testNow)
			require.True(t, ok)
			require.Equal(t, c, account.Category)
		}
		require.Empty(t, w.Find(p, "none"))
		require.Empty(t, w.FindAccount(p, "none"))
	}
	require.Empty(t, w.Find(link.YouTube, ShopAd))
	require.Empty(t, w.Find(link.TikTok, HiddenLikes))
}

func TestWorld_viralVideoGetsMoreViewsThanMostVideosOfAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(0)
	v, _ := w.fixedVideoData(link.TikTok, w.Find(link.TikTok, Viral), testNow)
	i := w.accountByNumber(link.TikTok, v.account)
	higher := 0
	others := w.uploadedIDs(i, testNow)
	for _, id := range others {
		other, _ := w.fixedVideoData(link.TikTok, id, testNow)
		if other.curve.final < v.curve.final/5 {
			higher++
		}
	}
	require.Greater(t, higher, len(others)/2)
}

func TestWorld_historyHasCountsAtEndOfEachDay(t *testing.T) {
	t.Parallel()
	w := newWorld(0)
	rapid.Check(t, func(t *rapid.T) {
		p := anyPlatform().Draw(t, "platform")
		id := anyID(p).Draw(t, "id")
		to := anyInstant().Draw(t, "to")
		from := to.AddDate(0, 0, -rapid.IntRange(0, 90).Draw(t, "days"))
		v, _ := w.Video(p, id, to)
		points := w.DailyCounts(p, id, from, to)
		for i, point := range points {
			require.False(t, point.At.After(to))
			require.False(t, point.At.Before(v.UploadedAt))
			if i > 0 {
				require.Equal(t, points[i-1].At.Truncate(24*time.Hour).AddDate(0, 0, 1), point.At.Truncate(24*time.Hour))
			}
			if point.At.Unix() >= epoch {
				then, _ := w.Video(p, id, point.At)
				require.Equal(t, then.Counts, point.Counts)
			}
		}
		if v.State == Public {
			require.NotEmpty(t, points)
			require.Equal(t, v.Counts, points[len(points)-1].Counts)
		}
	})
	t.Run("a video that is deleted", func(t *testing.T) {
		t.Parallel()
		v, _ := w.Video(link.TikTok, w.Find(link.TikTok, BecomesDeleted), testNow)
		points := w.DailyCounts(link.TikTok, v.ID, v.UploadedAt, v.ChangesAt.AddDate(0, 0, 10))
		require.NotEmpty(t, points)
		require.True(t, points[len(points)-1].At.Before(*v.ChangesAt), "the history must end when the video is deleted")
		require.Nil(t, w.DailyCounts(link.TikTok, "x", testNow, testNow))
	})
}

func TestWorld_titlesHaveHashtagsAndEmoji(t *testing.T) {
	t.Parallel()
	w := newWorld(0)
	wide := 0
	for i := range 300 {
		v, _ := w.Video(link.YouTube, exampleID(link.YouTube, i), testNow)
		require.True(t, utf8.ValidString(v.Title))
		require.LessOrEqual(t, utf8.RuneCountInString(v.Title), 100)
		require.NotEmpty(t, hashtagsIn(v.Title))
		for _, r := range v.Title {
			if r > 0xffff {
				wide++
				break
			}
		}
	}
	require.Greater(t, wide, 60, "many titles must have a character of four bytes")
}

func TestHandles_canBeDecodedInOnlyOneWay(t *testing.T) {
	t.Parallel()
	for i, a := range adjectives {
		for j, b := range adjectives {
			require.False(t, i != j && strings.HasPrefix(a, b), "the adjective %s must not begin with the adjective %s", a, b)
		}
		for _, noun := range nouns {
			require.LessOrEqual(t, len(a+noun)+5, 24, "the handle %s%s must not be too long for TikTok", a, noun)
		}
	}
}

func TestDecryptNumber_reversesEncryptNumber(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Uint64().Draw(t, "key")
		x := rapid.Uint64().Draw(t, "x")
		require.Equal(t, x, decryptNumber(encryptNumber(x, 64, key), 64, key))
		require.Equal(t, x&0xffffffff, decryptNumber(encryptNumber(x&0xffffffff, 32, key), 32, key))
	})
}
