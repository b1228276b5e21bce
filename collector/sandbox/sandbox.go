package sandbox

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// The keys that the sandbox demands: any other is refused as the real source refuses a wrong one.
const (
	YouTubeAPIKey = "sandbox-youtube-key"
	VendorKey     = "sandbox-vendor-key"
	// InstagramToken is that of the account that Settings names.
	InstagramToken = "sandbox-instagram-token"
	// FacebookToken is that of the page that Settings names; it may read the other pages, too.
	FacebookToken = "sandbox-facebook-token"
	// FacebookUserToken is that of a system user who has a role on the pages that World.FacebookPages names, and is given their
	// tokens by me/accounts. Insights, and all videos of the second and third of these pages, are for the page's token alone;
	// everything else it may read.
	FacebookUserToken = "sandbox-facebook-user-token"
	// MetaAppSecret is that of the app that all tokens of the Graph API are of.
	MetaAppSecret = "sandbox-meta-app-secret" //nolint:gosec // of nothing but the sandbox
)

// Header is borne by every response, with the value "true": made-up numbers never pass for real ones.
const Header = "ReelTally-Sandbox"

// Options are what a sandbox is made of. Every field may be left out.
type Options struct {
	Now    func() time.Time // time.Now
	Logger *slog.Logger     // none
	Seed   uint64           // another seed is another world
}

// Sandbox stands in for the platforms. It is made by New; all methods may be called concurrently.
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

// New makes a sandbox. It holds no resources and needs no closing.
func New(o Options) *Sandbox {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default that Options tells of; programs hand in theirs
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Sandbox{
		now: o.Now, logger: o.Logger, world: newWorld(o.Seed),
		faults: &faults{rules: map[string]*rule{}}, calls: newCallLog(), quota: newQuota(), logins: newTikTokLogins(o.Seed, o.Now()),
	}
}

// World gives the truth behind the answers.
func (s *Sandbox) World() *World { return s.world }

// Settings lists the environment, one NAME=value a line, that points every source and the resolver of short links at a
// sandbox whose Handler is served at baseURL.
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

// Handler serves every platform, the short links and the control calls; the package's documentation lists the paths.
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
				"nothing stands at this path; the sandbox has /youtube/, /tiktok/, /instagram/, /facebook/, /vendor/, /shortlinks/ and /_control/"))
		}
	})
}

// clock is the sandbox's time, to the second in UTC.
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
	platform string // of a vendor's call, "" for a platform that has a source of its own
	method   string
	ids      []string // what it asks for
}

// The sources, as faults and calls name them; a vendor's calls also bear the name of their platform.
const (
	sourceYouTube   = "youtube"
	sourceVendor    = "vendor"
	sourceInstagram = "instagram"
	sourceFacebook  = "facebook"
	// Those of TikTok's own are apart from what a vendor is asked of TikTok, which is called by the platform's name.
	sourceTikTokDisplay  = "tiktok_display"
	sourceTikTokResearch = "tiktok_research"
	sourceShortLinks     = "shortlinks"
)

// voice is how a source says the things that any source can say.
type voice struct {
	rateLimited, quotaSpent, serverError func() reply
	hostile                              func(turn int, good reply) reply
}

// serve answers a call: counted, and bent by the fault in force. Somebody without the key meets no fault, since a
// platform refuses him before anything else can happen.
func (s *Sandbox) serve(w http.ResponseWriter, c *call, v voice, answer func(*call) reply) {
	rep := answer(c)
	s.calls.add(c)
	if rep.refused {
		write(w, c.r, rep)
		return
	}
	f, turn, ok := s.faults.take(c.source, c.platform, c.ids)
	if !ok {
		write(w, c.r, rep)
		return
	}
	s.logger.DebugContext(c.r.Context(), "fault answers a call", "fault", f.Fault, "source", c.source, "method", c.method)
	switch f.Fault {
	case faultRateLimited:
		write(w, c.r, v.rateLimited().retryAfter(f.RetryAfter))
	case faultQuotaSpent:
		write(w, c.r, v.quotaSpent())
	case faultServerError:
		write(w, c.r, v.serverError().retryAfter(f.RetryAfter))
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
			rep = v.hostile(turn, rep)
		}
		write(w, c.r, rep)
	case faultTruncated:
		// By turns a broken text of honest length, and a whole one that breaks off on the way.
		write(w, c.r, rep.truncated(turn%2 == 1))
	}
}
