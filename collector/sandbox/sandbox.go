package sandbox

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// The keys that the sandbox accepts. It refuses any other key like the real source.
const (
	YouTubeAPIKey = "sandbox-youtube-key"
	VendorKey     = "sandbox-vendor-key"
	// InstagramToken is the token of the account in Settings.
	InstagramToken = "sandbox-instagram-token"
	// FacebookToken is the token of the page in Settings. It may also read all other pages.
	FacebookToken = "sandbox-facebook-token"
	// FacebookUserToken is the token of a system user. The user has a role on the pages of World.FacebookPages, and gets their tokens from
	// me/accounts. Only a page's own token may read insights and the videos of the second and third of these pages. The system user may read
	// everything else.
	FacebookUserToken = "sandbox-facebook-user-token"
	// MetaAppSecret is the secret of the app that issued all tokens of the Graph API.
	MetaAppSecret = "sandbox-meta-app-secret" //nolint:gosec // valid only in the sandbox
)

// Header is a header of every response with the value "true". It shows that the numbers are invented.
const Header = "ReelTally-Sandbox"

// Options configure a Sandbox. The zero value is ready for use.
type Options struct {
	Now    func() time.Time // nil means time.Now
	Logger *slog.Logger     // nil disables logging
	Seed   uint64           // determines the world
}

// Sandbox simulates the platforms. Use New to create it. All methods may be called concurrently.
type Sandbox struct {
	now    func() time.Time
	logger *slog.Logger
	world  *World
	frozen atomic.Pointer[time.Time] // set by PUT /_control/clock
	faults *faults
	calls  *callLog
	quota  *quota
	logins *tiktokLogins
	meta   metaApp
}

// New returns a sandbox. It needs no closing.
func New(o Options) *Sandbox {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of Options.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Sandbox{
		now: o.Now, logger: o.Logger, world: newWorld(o.Seed),
		faults: &faults{rules: map[string]*rule{}}, calls: newCallLog(), quota: newQuota(), logins: newTikTokLogins(o.Seed, o.Now()),
	}
}

// World returns the world of invented accounts and videos.
func (s *Sandbox) World() *World { return s.world }

// Settings returns environment variables as NAME=value. With them, all sources and the resolver of short links use the sandbox whose Handler
// is served at baseURL.
func (s *Sandbox) Settings(baseURL string) []string {
	base := strings.TrimRight(baseURL, "/")
	return []string{
		"REELTALLY_SANDBOX=true",
		"REELTALLY_YOUTUBE_BASE_URL=" + base + "/youtube/",
		"REELTALLY_YOUTUBE_API_KEY=" + YouTubeAPIKey,
		"REELTALLY_TIKTOK_BASE_URL=" + base + "/tiktok/",
		"REELTALLY_TIKTOK_CLIENT_KEY=" + TikTokClientKey,
		"REELTALLY_TIKTOK_CLIENT_SECRET=" + TikTokClientSecret,
		"REELTALLY_TIKTOK_REFRESH_TOKEN=" + TikTokRefreshToken,
		"REELTALLY_INSTAGRAM_BASE_URL=" + base + "/instagram/v25.0/",
		"REELTALLY_INSTAGRAM_ACCESS_TOKEN=" + InstagramToken,
		"REELTALLY_INSTAGRAM_APP_SECRET=" + MetaAppSecret,
		"REELTALLY_INSTAGRAM_ACCOUNT_ID=" + instagramUserID(s.world.instagramOwn().number),
		"REELTALLY_FACEBOOK_BASE_URL=" + base + "/facebook/v25.0/",
		"REELTALLY_FACEBOOK_ACCESS_TOKEN=" + FacebookToken,
		"REELTALLY_FACEBOOK_APP_SECRET=" + MetaAppSecret,
		"REELTALLY_FACEBOOK_PAGE_ID=" + s.world.facebookOwn().id,
		"REELTALLY_VENDOR=sandbox",
		"REELTALLY_VENDOR_BASE_URL=" + base + "/vendor",
		"REELTALLY_VENDOR_KEY=" + VendorKey,
		"REELTALLY_SHORTLINK_BASE_URL=" + base + "/shortlinks",
	}
}

// Handler returns the handler for all platforms, short links and control calls. The package comment lists the paths.
func (s *Sandbox) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(Header, "true")
		area, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch area {
		case "youtube":
			s.serveYouTube(w, r, rest)
		case "tiktok":
			s.serveTikTok(w, r, rest)
		case "instagram":
			s.serveInstagram(w, r, rest)
		case "facebook":
			s.serveFacebook(w, r, rest)
		case "vendor":
			s.serveVendor(w, r, rest)
		case "shortlinks":
			s.serveShortLink(w, r)
		case "_control":
			s.serveControl(w, r, rest)
		default:
			write(w, r, problem(http.StatusNotFound,
				"unknown path; the sandbox has /youtube/, /tiktok/, /instagram/, /facebook/, /vendor/, /shortlinks/ and /_control/"))
		}
	})
}

// clock returns the sandbox's time in UTC, in whole seconds.
func (s *Sandbox) clock() time.Time {
	if set := s.frozen.Load(); set != nil {
		return *set
	}
	return s.now().UTC().Truncate(time.Second)
}

// call is one request to a source.
type call struct {
	r        *http.Request
	now      time.Time
	source   string // one of the names below
	platform string // the platform of a vendor's call; "" for other calls
	method   string
	ids      []string // the requested ids, links or handles
}

// The names of the sources in faults and in the call log. A vendor's call also has the name of its platform.
const (
	sourceYouTube   = "youtube"
	sourceVendor    = "vendor"
	sourceInstagram = "instagram"
	sourceFacebook  = "facebook"
	// TikTok's own APIs have names that differ from the platform's name, which stands for a vendor's calls for TikTok.
	sourceTikTokDisplay  = "tiktok_display"
	sourceTikTokResearch = "tiktok_research"
	sourceShortLinks     = "shortlinks"
)

// errorReplies are the source's own answers for the faults.
type errorReplies struct {
	rateLimited, quotaSpent, serverError func() reply
	hostile                              func(turn int, good reply) reply
}

// serve answers and counts a call, and applies the current fault. A call without a valid key gets no fault, because a platform checks the key
// first.
func (s *Sandbox) serve(w http.ResponseWriter, c *call, replies errorReplies, answer func(*call) reply) {
	rep := answer(c)
	s.calls.add(c)
	if rep.refused {
		write(w, c.r, rep)
		return
	}
	f, n, ok := s.faults.take(c.source, c.platform, c.ids)
	if !ok {
		write(w, c.r, rep)
		return
	}
	s.logger.DebugContext(c.r.Context(), "call answered with a fault", "fault", f.Fault, "source", c.source, "method", c.method)
	switch f.Fault {
	case faultRateLimited:
		write(w, c.r, replies.rateLimited().retryAfter(f.RetryAfter))
	case faultQuotaSpent:
		write(w, c.r, replies.quotaSpent())
	case faultServerError:
		write(w, c.r, replies.serverError().retryAfter(f.RetryAfter))
	case faultSlow:
		if wait(c.r.Context(), f.RetryAfter) {
			write(w, c.r, rep)
		}
	case faultRefused:
		write(w, c.r, reply{status: f.Status, raw: f.Body})
	case faultZeros:
		write(w, c.r, zeroed(rep))
	case faultHostile:
		if rep.status == http.StatusOK || rep.status == http.StatusCreated || rep.redirects() {
			rep = replies.hostile(n, rep)
		}
		write(w, c.r, rep)
	case faultTruncated:
		// Content-Length is alternately that of the truncated and that of the whole body.
		write(w, c.r, rep.truncated(n%2 == 1))
	}
}
