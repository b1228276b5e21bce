package link_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store/link"
)

// randomLink returns a random link, with a random platform, kind and id, and the result that Parse must return for this link.
func randomLink(t *rapid.T) (raw string, want link.Link) {
	number := func(length int) string {
		return rapid.StringOfN(rapid.RuneFrom([]rune("123456789")), length, length, -1).Draw(t, "number")
	}
	code := func(length int) string {
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		return rapid.StringOfN(rapid.RuneFrom([]rune(alphabet)), length, length, -1).Draw(t, "code")
	}
	name := rapid.StringMatching(`[a-z][a-z0-9_.]{3,12}[a-z0-9]`).Draw(t, "name")
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		id := number(19)
		l := link.Link{Platform: link.TikTok, Kind: link.Video, ID: id, Handle: name, Canonical: "https://www.tiktok.com/@" + name + "/video/" + id}
		return "https://www.tiktok.com/@" + name + "/video/" + id, l
	case 1:
		return "https://www.tiktok.com/@" + name, accountLink(link.TikTok, name, "https://www.tiktok.com/@"+name)
	case 2:
		id := code(9)
		return "https://vm.tiktok.com/" + id + "/", shortLink(link.TikTok, id, "https://vm.tiktok.com/"+id+"/")
	case 3:
		id := code(rapid.IntRange(10, 12).Draw(t, "length"))
		l := link.Link{Platform: link.Instagram, Kind: link.Video, ID: id, Handle: name, Canonical: "https://www.instagram.com/reel/" + id + "/"}
		return "https://www.instagram.com/" + name + "/reel/" + id + "/", l
	case 4:
		id := code(10) + "E"
		l := link.Link{Platform: link.YouTube, Kind: link.Video, ID: id, Canonical: "https://www.youtube.com/shorts/" + id}
		return "https://www.youtube.com/shorts/" + id, l
	case 5:
		id := "UC" + code(21) + "g"
		return "https://www.youtube.com/channel/" + id, accountLinkWithID(link.YouTube, id, "https://www.youtube.com/channel/"+id)
	case 6:
		id := number(16)
		l := link.Link{Platform: link.Facebook, Kind: link.Video, ID: id, Handle: "page." + strings.ReplaceAll(name, "_", ""), Canonical: "https://www.facebook.com/reel/" + id}
		return "https://www.facebook.com/" + l.Handle + "/videos/" + id, l
	default:
		id := code(10)
		return "https://www.facebook.com/share/r/" + id + "/", shortLink(link.Facebook, id, "https://www.facebook.com/share/r/"+id+"/")
	}
}

func TestParse_handlesRandomLinks(t *testing.T) {
	t.Parallel()

	t.Run("the parser must return the same link for the canonical form", rapid.MakeCheck(func(t *rapid.T) {
		raw, want := randomLink(t)
		got, err := link.Parse(raw)
		require.NoError(t, err)
		require.Equal(t, want, got)
		again, err := link.Parse(got.Canonical)
		require.NoError(t, err)
		require.Equal(t, parsedCanonicalLink(got), again)
	}))

	t.Run("a query, a fragment, another scheme, upper case in the host or blanks must not change the result", rapid.MakeCheck(func(t *rapid.T) {
		raw, want := randomLink(t)
		query := url.Values{}
		for range rapid.IntRange(0, 6).Draw(t, "parameters") {
			key := rapid.SampledFrom([]string{
				"utm_source", "igsh", "igshid", "si", "feature", "pp", "t", "list", "mibextid", "_r", "_t", "is_from_webapp", "lang", "hl", "x",
			}).Draw(t, "key")
			query.Add(key, rapid.String().Draw(t, "value"))
		}
		noisy := raw + "?" + query.Encode() + rapid.SampledFrom([]string{"", "#", "#comments", "#t=1"}).Draw(t, "fragment")
		if len(noisy) > 2000 {
			noisy = raw
		}
		rest := strings.TrimPrefix(noisy, "https://")
		host, path, _ := strings.Cut(rest, "/")
		host = rapid.SampledFrom([]string{host, strings.ToUpper(host), host + ":443"}).Draw(t, "host")
		scheme := rapid.SampledFrom([]string{"https://", "http://", "HTTPS://", "//", ""}).Draw(t, "scheme")
		blank := rapid.SampledFrom([]string{"", " ", "\n", "\u200b"}).Draw(t, "blank")
		got, err := link.Parse(blank + scheme + host + "/" + path + blank)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}))

	t.Run("a link that contains a link must give the inner link", rapid.MakeCheck(func(t *rapid.T) {
		raw, want := randomLink(t)
		wrapper := rapid.SampledFrom([]string{
			"https://l.facebook.com/l.php?h=AT0&u=", "https://l.instagram.com/?e=AT0&u=", "https://www.youtube.com/redirect?event=x&q=",
			"https://consent.youtube.com/m?gl=DE&continue=", "https://www.tiktok.com/link/v2?aid=1&target=",
		}).Draw(t, "wrapper")
		got, err := link.Parse(wrapper + url.QueryEscape(raw) + "&z=1")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}))

	t.Run("any text must give either a link or an error", rapid.MakeCheck(func(t *rapid.T) {
		host := rapid.SampledFrom([]string{"", "https://www.tiktok.com/", "instagram.com/", "https://youtu.be/", "https://www.youtube.com/", "fb.watch/", "https://facebook.com/"}).Draw(t, "host")
		checkInvariants(t, host+rapid.String().Draw(t, "rest"))
	}))
}

// checkInvariants parses raw and checks rules for every result of Parse. For example, Parse must
// also accept the canonical link of an accepted link.
func checkInvariants(t require.TestingT, raw string) {
	got, err := link.Parse(raw)
	if err != nil {
		var refused *link.Error
		require.ErrorAs(t, err, &refused)
		require.Contains(t, []link.Reason{link.InvalidURL, link.UnsupportedPlatform, link.UnsupportedLink}, refused.Reason)
		require.NotEmpty(t, refused.Detail)
		require.False(t, strings.ContainsFunc(refused.Detail, unicode.IsControl), "%q", refused.Detail)
		require.Equal(t, link.Link{}, got)
		return
	}
	canonical, err := url.Parse(got.Canonical)
	require.NoError(t, err)
	require.Equal(t, "https", canonical.Scheme)
	require.Nil(t, canonical.User)
	require.Empty(t, canonical.Port())
	platform, ok := link.PlatformOfHost(canonical.Hostname())
	require.True(t, ok, got.Canonical)
	require.Equal(t, got.Platform, platform)
	require.True(t, containsPlatformHost(raw, got.Platform), "the text must contain a host of %s: %q", got.Platform, raw)

	for _, r := range got.Canonical {
		require.True(t, r > ' ' && r < 0x7f, "%q must contain only visible ASCII characters", got.Canonical)
	}
	handle := got.Handle
	if user, ok := link.YouTubeUser(got.Platform, handle); ok {
		require.Equal(t, link.Account, got.Kind)
		handle = user
	}
	for _, s := range []string{got.ID, handle} {
		require.False(t, strings.ContainsFunc(s, unicode.IsControl), "%q", s)
		require.False(t, strings.ContainsAny(s, "~@/?#% "), "%q", s)
	}
	require.Equal(t, link.FoldUsername(got.Handle), got.Handle)
	switch got.Kind {
	case link.Video:
		require.Regexp(t, map[link.Platform]string{
			link.TikTok:    `^[0-9]{15,20}$`,
			link.Instagram: `^[A-Za-z0-9_-]{10,12}$`,
			link.YouTube:   `^[A-Za-z0-9_-]{10}[048AEIMQUYcgkosw]$`,
			link.Facebook:  `^[0-9]{9,17}$`,
		}[got.Platform], got.ID)
	case link.Short:
		require.Regexp(t, `^[A-Za-z0-9_-]{5,40}$`, got.ID)
		require.Empty(t, got.Handle)
	default:
		require.Equal(t, link.Account, got.Kind)
		require.NotEmpty(t, got.ID+got.Handle)
	}

	again, err := link.Parse(got.Canonical)
	require.NoError(t, err, got.Canonical)
	require.Equal(t, parsedCanonicalLink(got), again)
}

// containsPlatformHost returns true if raw contains a host name of the platform. The host name can be percent-encoded up to three times.
func containsPlatformHost(raw string, p link.Platform) bool {
	names := map[link.Platform][]string{
		link.TikTok:    {"tiktok.com", "tiktokv.com", "tiktokv.us", "tiktokv.eu"},
		link.Instagram: {"instagram.com", "instagr.am"},
		link.YouTube:   {"youtube.com", "youtu.be", "youtube-nocookie.com", "youtubekids.com", "youtube.googleapis.com"},
		link.Facebook:  {"facebook.com", "fb.com", "fb.watch", "fb.me", ".onion"},
	}[p]
	text := strings.ToLower(raw)
	for range 4 {
		if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, name) }) {
			return true
		}
		text = strings.ToLower(unescape(text))
	}
	return false
}

// unescape decodes the valid percent-escapes in s once. Unlike url.PathUnescape, it does not fail for an invalid escape but leaves it
// unchanged.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func FuzzParse(f *testing.F) {
	for _, c := range allAcceptedLinks() {
		f.Add(c.in)
	}
	for _, c := range allRefusedLinks() {
		if len(c.in) < 4096 {
			f.Add(c.in)
		}
	}
	f.Fuzz(func(t *testing.T, raw string) { checkInvariants(t, raw) })
}

func FuzzFoldUsername(f *testing.F) {
	for _, s := range []string{"", "@", "@User", " User ", "name~1000", "~", "İ", "ẞ", "@@x", "\xff", "ハンドル"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		folded := link.FoldUsername(s)
		if !strings.HasPrefix(folded, "@") {
			require.Equal(t, folded, link.FoldUsername(folded), "FoldUsername must return a folded username unchanged")
		}
		shown := link.DisplayUsername(folded)
		require.NotContains(t, shown, "~")
		require.True(t, strings.HasPrefix(folded, shown))
		require.Equal(t, shown, link.DisplayUsername(shown))
	})
}

func TestParse_takesLessThan10msForLongInput(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		strings.Repeat("(", 100<<10),
		"https://www.tiktok.com/" + strings.Repeat("/", 2000),
		"https://www.youtube.com/?" + strings.Repeat("v=&", 600),
		"https://www.facebook.com/" + strings.Repeat("%25", 600),
		"https://" + strings.Repeat("a.", 900) + "tiktok.com",
		"https://youtu.be/" + strings.Repeat(")", 1900),
	} {
		start := time.Now()
		for range 100 {
			_, _ = link.Parse(raw)
		}
		require.Less(t, time.Since(start)/100, 10*time.Millisecond, "%.40q…", raw)
	}
}

func TestDescribe_returnsJSONWithFiveMembersInFixedOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"video with its account": {
			"https://www.tiktok.com/@User/video/" + tiktokID + "?lang=en",
			`{"platform":"tiktok","kind":"video","id":"` + tiktokID + `","handle":"user","canonical":"https://www.tiktok.com/@user/video/` + tiktokID + `"}`,
		},
		"video without its account": {
			"youtu.be/" + youtubeID,
			`{"platform":"youtube","kind":"video","id":"` + youtubeID + `","handle":null,"canonical":"https://www.youtube.com/watch?v=` + youtubeID + `"}`,
		},
		"account": {
			"instagram.com/User",
			`{"platform":"instagram","kind":"account","id":null,"handle":"user","canonical":"https://www.instagram.com/user/"}`,
		},
		"short link": {
			"fb.watch/3zYsXdnxjf",
			`{"platform":"facebook","kind":"short","id":"3zYsXdnxjf","handle":null,"canonical":"https://fb.watch/3zYsXdnxjf/"}`,
		},
		"refused link": {"https://evil.net/", `{"platform":null,"kind":null,"id":null,"handle":null,"canonical":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(link.Describe(c.in))
			require.NoError(t, err)
			require.Equal(t, c.want, string(got), "the JSON object must have these members in this order")
		})
	}
}

func TestHostPlatform_comparesWholeLabels(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]link.Platform{
		"tiktok.com": link.TikTok, "www.tiktok.com": link.TikTok, "vm.tiktok.com": link.TikTok, "VT.TikTok.com": link.TikTok, "www.tiktokv.com": link.TikTok,
		"instagram.com": link.Instagram, "l.instagram.com": link.Instagram, "instagr.am": link.Instagram,
		"youtu.be": link.YouTube, "m.youtube.com": link.YouTube, "www.youtube-nocookie.com": link.YouTube, "www.youtubekids.com": link.YouTube,
		"facebook.com": link.Facebook, "zh-hk.facebook.com": link.Facebook, "fb.watch": link.Facebook, "fb.me": link.Facebook, "fb.com": link.Facebook,
	} {
		got, ok := link.PlatformOfHost(host)
		require.True(t, ok, host)
		require.Equal(t, want, got, host)
	}
	for _, host := range []string{
		"", ".", "com", "tiktok", "eviltiktok.com", "tiktok.com.evil.net", "tiktok.com.", ".tiktok.com", "a..tiktok.com", "tiktok.com:443", "x@tiktok.com",
		"googleapis.com", "www.googleapis.com", "xn--tktok-q4a.com", "tіktok.com", "evil.net/tiktok.com", "evil.net#.tiktok.com",
	} {
		_, ok := link.PlatformOfHost(host)
		require.False(t, ok, host)
	}
}

func TestFoldUsername_removesBlanksAndAtSignAndReturnsLowerCase(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"user": "user", "USER": "user", "@User": "user", "  @User\t": "user", "@@user": "@user", "": "", "@": "",
		"КАНАЛ": "канал", "ÀÉ": "àé", "Some.Name~100063551323670": "some.name~100063551323670",
	} {
		require.Equal(t, want, link.FoldUsername(in), in)
	}
}

func TestDisplayUsername_removesFirstTildeAndTheTextAfterIt(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"some.name": "some.name", "some.name~100063551323670": "some.name", "a~b~c": "a", "~1": "", "": "", "name~user": "name",
	} {
		require.Equal(t, want, link.DisplayUsername(in), in)
	}
}

func TestParse_acceptsTheResultOfAccountURL(t *testing.T) {
	t.Parallel()
	for p, handle := range map[link.Platform]string{
		link.TikTok: "user.name", link.Instagram: "user_name", link.YouTube: "ハンドル·1", link.Facebook: "слово-100063551323670",
	} {
		l, err := link.Parse(link.AccountURL(p, handle))
		require.NoError(t, err)
		require.Equal(t, handle, l.Handle)
		require.Equal(t, link.AccountURL(p, handle), l.Canonical)
		require.Empty(t, link.AccountURL(p, ""))
	}
	require.Equal(t, "https://www.facebook.com/some.name", link.AccountURL(link.Facebook, "some.name~100063551323670"))
	require.Equal(t, "https://www.youtube.com/user/%E6%97%A5name", link.AccountURL(link.YouTube, "日name~user"))
	for p, id := range map[link.Platform]string{link.TikTok: "6567659045795758085", link.YouTube: channelID, link.Facebook: "100063551323670"} {
		l, err := link.Parse(link.AccountURLFromID(p, id))
		require.NoError(t, err)
		require.Equal(t, accountLinkWithID(p, id, link.AccountURLFromID(p, id)), l)
	}
	l, err := link.Parse(link.AccountURLFromID(link.TikTok, secUID))
	require.NoError(t, err)
	require.Equal(t, secUID, l.ID)
}

func TestWithHandle_addsHandleToTikTokLinkWithoutHandle(t *testing.T) {
	t.Parallel()
	withoutHandle := tiktokVideo("").Canonical
	require.Equal(t, tiktokVideo("user").Canonical, link.WithHandle(link.TikTok, withoutHandle, "user"))
	require.Equal(t, withoutHandle, link.WithHandle(link.TikTok, withoutHandle, ""))
	require.Equal(t, tiktokVideo("user").Canonical, link.WithHandle(link.TikTok, tiktokVideo("user").Canonical, "other"))
	require.Equal(t, youtubeVideo().Canonical, link.WithHandle(link.YouTube, youtubeVideo().Canonical, "user"))
}

func TestUploadTime_returnsUploadTimeThatVideoIDContains(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in    string
		want  time.Time
		known bool
	}{
		"TikTok":                              {"https://www.tiktok.com/@leenabhushan/video/6748451240264420610", time.Date(2019, 10, 16, 0, 0, 0, 0, time.UTC), true},
		"Instagram post of 2016":              {"https://www.instagram.com/p/BA-pQFBG8HZ/", time.Unix(1453760977, 0).UTC(), true},
		"Instagram code of ten characters":    {"https://www.instagram.com/p/aye83DjauH/", time.Unix(1371748545, 0).UTC(), true},
		"Instagram code of more than 64 bits": {"https://www.instagram.com/p/___________/", time.Time{}, false},
		"TikTok id without a time":            {"https://www.tiktok.com/@user/video/100000000000000", time.Time{}, false},
		"TikTok id of more than 64 bits":      {"https://www.tiktok.com/@user/video/99999999999999999999", time.Time{}, false},
		"YouTube":                             {"https://youtu.be/" + youtubeID, time.Time{}, false},
		"Facebook":                            {"https://www.facebook.com/reel/" + facebookID, time.Time{}, false},
		"account with a numeric id":           {"https://www.tiktok.com/share/user/6567659045795758085", time.Time{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := link.Parse(c.in)
			require.NoError(t, err)
			got, known := link.UploadTime(l)
			require.Equal(t, c.known, known)
			if known {
				require.WithinDuration(t, c.want, got, 48*time.Hour)
				require.Equal(t, time.UTC, got.Location())
			}
		})
	}
}

func BenchmarkParse500(b *testing.B) {
	var links []string
	for i := 0; len(links) < 500; i++ {
		c := allAcceptedLinks()[i%len(allAcceptedLinks())]
		links = append(links, c.in)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, raw := range links {
			_, _ = link.Parse(raw)
		}
	}
}
