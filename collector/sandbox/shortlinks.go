package sandbox

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

// shortCase says what a short link does. Most values name the kind of page to which the link redirects.
type shortCase string

const (
	shortVideo   shortCase = "video"
	shortAccount shortCase = "account"
	shortHome    shortCase = "home" // the platform's home page
	shortLogin   shortCase = "login"
	shortMissing shortCase = "missing" // no redirect: the answer is status 404
	shortLive    shortCase = "live"    // a live broadcast, on TikTok only
	shortPhoto   shortCase = "photo"   // a slideshow, on TikTok only
	shortHops    shortCase = "hops"    // the short link leads to a video by two redirects
	shortLoop    shortCase = "loop"    // the short link redirects to itself
)

// shortCaseMarkers lists markers that the code of a short link can have. A marker determines what
// the link does.
var shortCaseMarkers = []struct {
	marker string
	is     shortCase
}{
	{"Vide", shortVideo}, {"Acct", shortAccount}, {"Dead", shortHome}, {"Wall", shortLogin}, {"Gone", shortMissing},
	{"Live", shortLive}, {"Foto", shortPhoto}, {"Hops", shortHops}, {"Loop", shortLoop},
}

// shortFrequencies says how many of a thousand short links belong to each case. The other short links
// redirect directly to a video, apart from the exceptions in shortLinkTarget.
var shortFrequencies = []frequency[shortCase]{{shortAccount, 15}, {shortHome, 5}, {shortMissing, 5}, {shortHops, 10}}

// target is the page to which a short link redirects.
type target struct {
	is       shortCase
	location string // URL of the page; "" if the short link is answered with status 404
}

// shortLinkTarget returns the page to which the short link with the given code redirects. The same code always leads to the same page.
func (s *Sandbox) shortLinkTarget(p link.Platform, code string) target {
	d := rng{hashTexts(s.world.seed, "short", string(p), code)}
	t := target{is: pickCategory(shortFrequencies, d, shortVideo)}
	// On Instagram and Facebook, one in a hundred short links redirects to a login page.
	if d.nextUint64(); p != link.TikTok && d.fraction() < 0.01 {
		t.is = shortLogin
	}
	// A marker begins the code, except on TikTok, where it follows the first two characters.
	rest := code
	if p == link.TikTok && len(code) > 2 {
		rest = code[2:]
	}
	// A marker takes precedence over the random case.
	for _, m := range shortCaseMarkers {
		if strings.HasPrefix(rest, m.marker) {
			t.is = m.is
		}
	}
	owner, id := s.shortLinkVideo(p, &d, p == link.TikTok && t.is == shortPhoto)
	switch p {
	case link.TikTok:
		t.location = tiktokTarget(t.is, owner, id, &d)
	case link.Instagram:
		t.location = instagramTarget(t.is, owner, id)
	default:
		t.location = facebookTarget(t.is, owner, id, &d)
	}
	return t
}

// shortLinkVideo returns a video and its author: the slideshow from World.Find if photo is true,
// and a random video otherwise.
func (s *Sandbox) shortLinkVideo(p link.Platform, d *rng, photo bool) (identity, string) {
	at := time.Unix(epoch, 0)
	if photo {
		id := s.world.Find(p, Photo)
		return s.world.authorOf(p, id, s.world.originOf(p, id, at)), id
	}
	for {
		i := s.world.accountByNumber(p, uint32(d.nextUint64()))
		if s.world.accountCategory(p, i.number) != AccountNormal {
			continue
		}
		// The five oldest videos were uploaded before epoch, so the result does not depend on the
		// clock.
		index := int64(d.intBelow(5))
		id := s.world.uploadID(p, i.number, index, s.world.generateUploadSchedule(p, i.number, at).uploadTime(index))
		if v, ok := s.world.fixedVideoData(p, id, at); ok && (v.category == Normal || v.category == Viral) {
			return i, id
		}
	}
}

// tiktokTarget returns the URL to which a TikTok short link of the given kind redirects, or "" if the answer is status 404.
func tiktokTarget(kind shortCase, owner identity, id string, d *rng) string {
	switch kind {
	case shortAccount:
		return fmt.Sprintf("https://www.tiktok.com/@%s?_t=ZM-%08x&_r=1", owner.handle, uint32(d.nextUint64()))
	case shortHome:
		return "https://www.tiktok.com/?_r=1"
	case shortLogin:
		return "https://www.tiktok.com/login?redirect_url=" + url.QueryEscape("https://www.tiktok.com/@"+owner.handle+"/video/"+id)
	case shortLive:
		return "https://www.tiktok.com/@" + owner.handle + "/live?_r=1"
	case shortPhoto:
		return fmt.Sprintf("https://www.tiktok.com/@%s/photo/%s?_r=1&_t=ZM-%08x", owner.handle, id, uint32(d.nextUint64()))
	case shortMissing:
		return ""
	}
	return fmt.Sprintf("https://www.tiktok.com/@%s/video/%s?_r=1&_t=ZM-%08x", owner.handle, id, uint32(d.nextUint64()))
}

// instagramTarget returns the URL to which an Instagram short link of the given kind redirects, or "" if the answer is status 404.
func instagramTarget(kind shortCase, owner identity, id string) string {
	const home = "https://www.instagram.com/"
	switch kind {
	case shortAccount:
		return home + owner.handle + "/?igsh=MWQ1ZGUxMzBkMA=="
	case shortHome, shortLive, shortPhoto:
		return home
	case shortLogin:
		return home + "accounts/login/?next=" + url.QueryEscape(home+"reel/"+id+"/?igsh=MWQ1ZGUxMzBkMA==")
	case shortMissing:
		return ""
	}
	return home + "reel/" + id + "/?igsh=MWQ1ZGUxMzBkMA=="
}

// facebookTarget returns the URL to which a Facebook short link of the given kind redirects, or "" if the answer is status 404.
func facebookTarget(kind shortCase, owner identity, id string, d *rng) string {
	const home = "https://www.facebook.com/"
	video := pickRandom(d, []string{home + "reel/" + id + "/?rdid=sandbox", home + "watch/?v=" + id, home + owner.handle + "/videos/" + id + "/"})
	switch kind {
	case shortAccount:
		return home + owner.handle + "?mibextid=ZbWKwL"
	case shortHome, shortLive, shortPhoto:
		return home
	case shortLogin:
		return home + "login/?next=" + url.QueryEscape(video)
	case shortMissing:
		return ""
	}
	return video
}

// serveShortLink answers GET and HEAD requests for /shortlinks/HOST/PATH as HOST would answer requests for PATH.
func (s *Sandbox) serveShortLink(w http.ResponseWriter, r *http.Request) {
	host, path, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/shortlinks/"), "/")
	c := &call{r: r, now: s.clock(), source: sourceShortLinks, method: host, ids: []string{host + "/" + path}}
	s.serveCall(w, c, errorRepliesForShortLinks(), func(c *call) reply {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return markRefused(htmlReply(http.StatusMethodNotAllowed, "Method Not Allowed")).withHeader("Allow", "GET, HEAD")
		}
		address := "https://" + host + "/" + path
		if r.URL.RawQuery != "" {
			address += "?" + r.URL.RawQuery
		}
		l, err := link.Parse(address)
		switch {
		case err != nil && !isPlatformHost(host):
			return markRefused(htmlReply(http.StatusNotFound, "The sandbox does not simulate this host"))
		case err != nil || l.Kind != link.Short || l.Platform == link.YouTube:
			return htmlReply(http.StatusOK, "A page of "+host) // the request is for a page to which a short link redirects, such as the page of a video
		}
		return redirectReply(l, s.shortLinkTarget(l.Platform, l.ID))
	})
}

// redirectReply returns the reply to a request for a short link. The reply is a redirect to the target, or status 404 if the link leads to no page
// (shortMissing).
func redirectReply(l link.Link, t target) reply {
	status := http.StatusFound
	if l.Platform == link.TikTok {
		status = http.StatusMovedPermanently
	}
	switch t.is {
	case shortMissing:
		return htmlReply(http.StatusNotFound, "Not Found")
	case shortLoop:
		t.location = l.Canonical
	case shortHops:
		// The first redirect leads to the same code at another URL of the platform, and the second redirect leads to the video.
		if next := firstRedirectURL(l); next != l.Canonical {
			t.location = next
		}
	}
	return htmlReply(status, "Moved").withHeader("Location", t.location)
}

// firstRedirectURL returns the URL to which the first redirect leads in the case shortHops. The URL
// has the short link's platform and code.
func firstRedirectURL(l link.Link) string {
	switch l.Platform {
	case link.TikTok:
		return "https://www.tiktok.com/t/" + l.ID + "/"
	case link.Instagram:
		return "https://www.instagram.com/share/" + l.ID + "/"
	default:
		return "https://www.facebook.com/share/" + l.ID + "/"
	}
}

func isPlatformHost(host string) bool {
	_, ok := link.PlatformOfHost(strings.ToLower(host))
	return ok
}

func htmlReply(status int, title string) reply {
	return reply{status: status, kind: "text/html; charset=utf-8", raw: []byte("<!DOCTYPE html><title>" + title + "</title>")}
}

// errorRepliesForShortLinks returns, for each kind of fault, the answer to a request for a short link.
func errorRepliesForShortLinks() errorReplies {
	return errorReplies{
		rateLimited: func() reply { return htmlReply(http.StatusTooManyRequests, "Too Many Requests") },
		quotaSpent:  func() reply { return htmlReply(http.StatusTooManyRequests, "Too Many Requests") }, // platforms have no quota for short links, so this fault gets the same answer as rateLimited
		serverError: func() reply { return htmlReply(http.StatusServiceUnavailable, "Service Unavailable") },
		hostile:     hostileRedirect,
	}
}
