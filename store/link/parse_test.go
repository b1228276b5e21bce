package link_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
)

// acceptedLink is a test case for Parse: a link that Parse accepts, and the expected result.
type acceptedLink struct {
	name string
	in   string
	want link.Link
}

// refusedLink is a test case for Parse: a link that Parse refuses, the expected Error.Reason, and a part of the expected Error.Detail.
type refusedLink struct {
	name       string
	in         string
	reason     link.Reason
	wantDetail string
}

func allAcceptedLinks() []acceptedLink {
	var all []acceptedLink
	for _, table := range [][]acceptedLink{acceptedTikTokLinks(), acceptedInstagramLinks(), acceptedYouTubeLinks(), acceptedFacebookLinks(), linksWithSurroundings()} {
		all = append(all, table...)
	}
	return all
}

func allRefusedLinks() []refusedLink {
	var all []refusedLink
	for _, table := range [][]refusedLink{refusedTikTokLinks(), refusedInstagramLinks(), refusedYouTubeLinks(), refusedFacebookLinks(), linksOfOtherHosts(), invalidWebAddresses()} {
		all = append(all, table...)
	}
	return all
}

// Requirements in docs/coverage.md: 11.11-01, 11.11-02, 11.11-03
func TestParse_returnsPlatformKindIDAndCanonicalLink(t *testing.T) {
	t.Parallel()
	for _, c := range allAcceptedLinks() {
		t.Run(string(c.want.Platform)+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			got, err := link.Parse(c.in)
			require.NoError(t, err, c.in)
			require.Equal(t, c.want, got, c.in)
		})
	}
}

func TestParse_returnsReasonAndDetailForRefusedLink(t *testing.T) {
	t.Parallel()
	for _, c := range allRefusedLinks() {
		t.Run(string(c.reason)+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			got, err := link.Parse(c.in)
			require.Equal(t, link.Link{}, got, "Parse must return the zero Link if it refuses the link")
			var refused *link.Error
			require.ErrorAs(t, err, &refused, c.in)
			require.Equal(t, c.reason, refused.Reason, refused.Detail)
			require.Contains(t, refused.Detail, c.wantDetail)
			require.True(t, strings.HasSuffix(refused.Detail, "."), "the detail must end with a full stop: %s", refused.Detail)
			require.Less(t, len(refused.Detail), 600, "the detail must not contain the whole link")
		})
	}
}

func TestParse_hasAtLeast300DifferentTestCases(t *testing.T) {
	t.Parallel()
	names, links := map[string]bool{}, map[string]bool{}
	for _, c := range allAcceptedLinks() {
		names[string(c.want.Platform)+c.name], links[c.in] = true, true
	}
	for _, c := range allRefusedLinks() {
		names[string(c.reason)+c.name], links[c.in] = true, true
	}
	total := len(allAcceptedLinks()) + len(allRefusedLinks())
	require.GreaterOrEqual(t, total, 300)
	require.Len(t, names, total, "the names of the test cases must be unique")
	require.Len(t, links, total, "the links of the test cases must be unique")
}

func TestParse_returnsSameResultForCanonicalLink(t *testing.T) {
	t.Parallel()
	for _, c := range allAcceptedLinks() {
		again, err := link.Parse(c.want.Canonical)
		require.NoError(t, err, c.want.Canonical)
		require.Equal(t, parsedCanonicalLink(c.want), again)
	}
}

// parsedCanonicalLink returns the expected result of Parse for l.Canonical. The canonical links of
// videos on Instagram and Facebook contain no handle.
func parsedCanonicalLink(l link.Link) link.Link {
	if l.Kind == link.Video && (l.Platform == link.Instagram || l.Platform == link.Facebook) {
		l.Handle = ""
	}
	return l
}

const (
	tiktokID    = "7106594312292453675"
	instagramID = "DCXkB8LpR2q"
	youtubeID   = "dQw4w9WgXcQ"
	channelID   = "UCLqxVugv74EIW3VWh2NOa3Q"
	facebookID  = "1139247764231866"
	secUID      = "MS4wLjABAAAATh8Vewkn0LYM7Fo03iec3qKdeCUOcBIouRk1mkiag6h3o_pQu_dUXvZ2EZlGST7_"
	// privateSuffix has the form of the text that Instagram appends to the code of a private account's post.
	privateSuffix = "ABCDEFGHIJKLMNOPQRSTUVWXYZ01"
)

func tiktokVideo(handle string) link.Link {
	return link.Link{
		Platform: link.TikTok, Kind: link.Video, ID: tiktokID, Handle: handle,
		Canonical: "https://www.tiktok.com/@" + handle + "/video/" + tiktokID,
	}
}

func instagramVideo(handle, word string) link.Link {
	return link.Link{
		Platform: link.Instagram, Kind: link.Video, ID: instagramID, Handle: handle,
		Canonical: "https://www.instagram.com/" + word + "/" + instagramID + "/",
	}
}

// instagramReel returns the link of a reel with a code other than instagramID.
func instagramReel(code, handle string) link.Link {
	return link.Link{Platform: link.Instagram, Kind: link.Video, ID: code, Handle: handle, Canonical: "https://www.instagram.com/reel/" + code + "/"}
}

func youtubeVideo() link.Link {
	return link.Link{
		Platform: link.YouTube, Kind: link.Video, ID: youtubeID,
		Canonical: "https://www.youtube.com/watch?v=" + youtubeID,
	}
}

func youtubeShort() link.Link {
	l := youtubeVideo()
	l.Canonical = "https://www.youtube.com/shorts/" + youtubeID
	return l
}

func facebookVideo(handle string) link.Link {
	return link.Link{
		Platform: link.Facebook, Kind: link.Video, ID: facebookID, Handle: handle,
		Canonical: "https://www.facebook.com/reel/" + facebookID,
	}
}

func accountLink(p link.Platform, handle, canonical string) link.Link {
	return link.Link{Platform: p, Kind: link.Account, Handle: handle, Canonical: canonical}
}

func accountLinkWithID(p link.Platform, id, canonical string) link.Link {
	return link.Link{Platform: p, Kind: link.Account, ID: id, Canonical: canonical}
}

func shortLink(p link.Platform, code, canonical string) link.Link {
	return link.Link{Platform: p, Kind: link.Short, ID: code, Canonical: canonical}
}

// linksWithSurroundings returns test cases with links in unusual spellings and encodings, and with surrounding text.
func linksWithSurroundings() []acceptedLink {
	return []acceptedLink{
		{"link without a scheme", "tiktok.com/@user/video/" + tiktokID, tiktokVideo("user")},
		{"link with http", "http://www.tiktok.com/@user/video/" + tiktokID, tiktokVideo("user")},
		{"link with the scheme in upper case", "HTTPS://www.tiktok.com/@user/video/" + tiktokID, tiktokVideo("user")},
		{"link that begins with //", "//www.tiktok.com/@user/video/" + tiktokID, tiktokVideo("user")},
		{"link with only one slash after the scheme", "https:/www.tiktok.com/@user/video/" + tiktokID, tiktokVideo("user")},
		{"link with the host in upper case", "https://WWW.TikTok.COM/@user/video/" + tiktokID, tiktokVideo("user")},
		{"link with port 443", "https://www.tiktok.com:443/@user/video/" + tiktokID, tiktokVideo("user")},
		{"link with port 80", "http://www.tiktok.com:80/@user/video/" + tiktokID, tiktokVideo("user")},
		{"link with a port but no scheme", "www.tiktok.com:443/@user/video/" + tiktokID, tiktokVideo("user")},
		{"link with a final slash", "https://www.tiktok.com/@user/video/" + tiktokID + "/", tiktokVideo("user")},
		{"link with doubled slashes", "https://www.tiktok.com//@user//video//" + tiktokID + "//", tiktokVideo("user")},
		{"link with a fragment", "https://www.tiktok.com/@user/video/" + tiktokID + "#comments", tiktokVideo("user")},
		{"link with a fragment that marks a text", "https://www.tiktok.com/@user/video/" + tiktokID + "#:~:text=hello", tiktokVideo("user")},
		{"link with an empty query", "https://www.tiktok.com/@user/video/" + tiktokID + "?", tiktokVideo("user")},
		{"link with invalid characters in the query", "https://www.tiktok.com/@user/video/" + tiktokID + "?%zz=&=&&x", tiktokVideo("user")},
		{"link with a second question mark in the query", "https://www.tiktok.com/@user/video/" + tiktokID + "?a=b?c=d", tiktokVideo("user")},
		{"link with & in place of ? before the query", "https://www.tiktok.com/@user/video/" + tiktokID + "&lang=en", tiktokVideo("user")},
		{"link with a percent-encoded at sign", "https://www.tiktok.com/%40user/video/" + tiktokID, tiktokVideo("user")},
		{"link with percent-encoded slashes", "https://www.tiktok.com/@user%2Fvideo%2F" + tiktokID, tiktokVideo("user")},
		{"link with a percent-encoded blank at the end", "https://www.tiktok.com/@user/video/" + tiktokID + "%20", tiktokVideo("user")},
		{"completely percent-encoded link", "https%3A%2F%2Fwww.tiktok.com%2F%40user%2Fvideo%2F" + tiktokID + "%3Flang%3Den", tiktokVideo("user")},
		{"completely percent-encoded link with hexadecimal digits in lower case", "https%3a%2f%2fwww.tiktok.com%2f%40user%2fvideo%2f" + tiktokID, tiktokVideo("user")},
		{"link between blanks", "  https://www.tiktok.com/@user/video/" + tiktokID + " \t", tiktokVideo("user")},
		{"link before a line end", "https://www.tiktok.com/@user/video/" + tiktokID + "\r\n", tiktokVideo("user")},
		{"link after a byte order mark", "\ufeffhttps://www.tiktok.com/@user/video/" + tiktokID, tiktokVideo("user")},
		{"link before a zero-width space", "https://www.tiktok.com/@user/video/" + tiktokID + "\u200b", tiktokVideo("user")},
		{"link between direction marks", "\u202ahttps://www.tiktok.com/@user/video/" + tiktokID + "\u202c", tiktokVideo("user")},
		{"link in angle brackets", "<https://www.tiktok.com/@user/video/" + tiktokID + ">", tiktokVideo("user")},
		{"link in parentheses", "(https://www.tiktok.com/@user/video/" + tiktokID + ")", tiktokVideo("user")},
		{"link in quotes", `"https://www.tiktok.com/@user/video/` + tiktokID + `"`, tiktokVideo("user")},
		{"link in typographic quotes", "“https://www.tiktok.com/@user/video/" + tiktokID + "”", tiktokVideo("user")},
		{"link in back quotes", "`https://www.tiktok.com/@user/video/" + tiktokID + "`", tiktokVideo("user")},
		{"link at the end of a sentence", "https://www.tiktok.com/@user/video/" + tiktokID + ".", tiktokVideo("user")},
		{"link before a comma", "https://www.tiktok.com/@user/video/" + tiktokID + ",", tiktokVideo("user")},
		{"link before exclamation marks", "https://www.tiktok.com/@user/video/" + tiktokID + "!!!", tiktokVideo("user")},
		{"link before an ideographic full stop", "https://www.tiktok.com/@user/video/" + tiktokID + "。", tiktokVideo("user")},
		{"link at the end of a sentence in parentheses", "(https://www.tiktok.com/@user/video/" + tiktokID + ").", tiktokVideo("user")},
		{"link with a final slash before punctuation", "https://www.tiktok.com/@user/video/" + tiktokID + "/).", tiktokVideo("user")},
		{"link before an ellipsis", "https://www.tiktok.com/@user/...", accountLink(link.TikTok, "user", "https://www.tiktok.com/@user")},
		{"link in bold markup", "**https://www.tiktok.com/@user/video/" + tiktokID + "**", tiktokVideo("user")},
		{"link whose id ends in a dash", "https://www.instagram.com/p/DCXkB8LpR2-/", link.Link{
			Platform: link.Instagram, Kind: link.Video, ID: "DCXkB8LpR2-", Canonical: "https://www.instagram.com/p/DCXkB8LpR2-/",
		}},
		{"link whose id ends in an underscore", "https://www.instagram.com/p/DCXkB8LpR2_", link.Link{
			Platform: link.Instagram, Kind: link.Video, ID: "DCXkB8LpR2_", Canonical: "https://www.instagram.com/p/DCXkB8LpR2_/",
		}},
		{"link in italic markup with an underscore after the id", "*https://www.instagram.com/p/" + instagramID + "_", instagramVideo("", "p")},
		{"link with &amp; in place of each ampersand", "https://www.youtube.com/watch?feature=share&amp;v=" + youtubeID + "&amp;t=1", youtubeVideo()},
		{"link with &amp;amp; in place of each ampersand", "https://www.youtube.com/watch?feature=share&amp;amp;v=" + youtubeID, youtubeVideo()},
		{"link with semicolons between the query parameters", "https://www.youtube.com/watch?feature=share;v=" + youtubeID + ";t=1", youtubeVideo()},
		{"link with an upper-case path and parameter name", "https://www.youtube.com/Watch?V=" + youtubeID, youtubeVideo()},
	}
}

func TestPlatform_hasATitleInTheRightCase(t *testing.T) {
	t.Parallel()
	for _, p := range link.Platforms {
		require.True(t, strings.EqualFold(string(p), p.Title()), p)
		require.NotEqual(t, string(p), p.Title())
	}
	require.Empty(t, link.Platform("vimeo").Title())
}
