package link

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	facebookIDShape   = "a Facebook video id has 9 to 17 digits and does not begin with 0, as in facebook.com/reel/1139247764231866"
	facebookNameShape = "a Facebook name has 2 or more letters, digits and dots, as in facebook.com/name"
)

// parseFacebook parses an address whose host belongs to Facebook.
func (a *address) parseFacebook() (Link, *Error) {
	switch a.base {
	case "fb.watch":
		return a.facebookShortLink("fb.watch", "/")
	case "fb.me":
		return a.facebookShortLink(a.host, "")
	}
	if inner := a.addressInFragment(); inner != nil {
		// Old links have the video in the fragment, as in facebook.com/NAME#!/video.php?v=ID.
		if l, err := inner.parseFacebook(); err == nil {
			return l, nil
		}
	}
	if inner, ok := a.facebookInnerLink(); ok {
		return a.parseInnerLink(inner)
	}
	// The former page browser of Facebook put /pg/ before the account's name.
	if a.lowerPathPart(0) == "pg" {
		a.parts = a.parts[1:]
		if a.sub == "business" {
			a.sub = "" // business.facebook.com/pg/NAME is the page that www.facebook.com/NAME shows
		}
	}
	switch first := a.lowerPathPart(0); first {
	case "reel", "reels":
		return a.facebookVideoLink("", a.pathPart(1))
	case "watch", "video.php", "photo.php":
		// The link photo.php?v=ID leads to a video, but photo.php?fbid=ID leads to a photo.
		if id := a.queryValue("v"); id != "" {
			return a.facebookVideoLink("", id)
		}
	case "video", "videos":
		return a.parseFacebookPlayer()
	case "share":
		return a.facebookShareLink()
	case "profile.php":
		return a.facebookAccountIDLink(a.queryValue("id"))
	case "profile":
		return a.facebookAccountIDLink(a.pathPart(1))
	case "people", "pages":
		if a.lowerPathPart(1) == "category" {
			if id, ok := facebookPageID(a.pathPart(3)); ok {
				return a.facebookAccountIDLink(id)
			}
			return Link{}, a.refusePath()
		}
		if len(a.parts) > 2 {
			return a.facebookAccountIDLink(a.pathPart(2))
		}
	case "p":
		if id, ok := facebookPageID(a.pathPart(1)); ok {
			return a.facebookAccountIDLink(id)
		}
	default:
		return a.parseFacebookProfile()
	}
	return Link{}, a.refusePath()
}

// parseFacebookProfile parses a path that begins with the name of an account, and returns the account or one of its videos.
func (a *address) parseFacebookProfile() (Link, *Error) {
	name := strings.TrimPrefix(a.pathPart(0), "@")
	if name == "" || isFacebookReserved(a.lowerPathPart(0)) || strings.HasSuffix(a.lowerPathPart(0), ".php") {
		return Link{}, a.refusePath()
	}
	switch tab := a.lowerPathPart(1); tab {
	case "videos", "reel", "video":
		// Video links of an account have the forms /NAME/videos/ID, /NAME/videos/TITLE/ID, /NAME/videos/ALBUM/ID and /NAME/videos/ID/TITLE.
		// An encoded "?", "&" or "/" in TITLE changes the decoded parts, so the last part before decoding is also tried.
		for _, id := range [...]string{a.pathPart(3), a.pathPart(2), a.lastPart} {
			if len(a.parts) > 2 && isFacebookID(id) {
				return a.facebookVideoLink(name, id)
			}
		}
		if len(a.parts) > 2 || tab != "videos" {
			return Link{}, a.refuseVideoID(a.pathPart(2), facebookIDShape)
		}
		return a.facebookAccountLink(name)
	case "", "reels", "reels_tab", "live_videos", "about", "about_details", "about_contact_and_basic_info", "about_profile_transparency",
		"info", "photos_stream", "followers", "following", "friends", "photos", "photos_by", "posts", "mentions", "community", "reviews", "shop", "music", "services", "timeline":
		if len(a.parts) <= 2 {
			return a.facebookAccountLink(name)
		}
	}
	return Link{}, a.refusePath()
}

// parseFacebookPlayer parses the paths of the video player, such as /video/video.php?v=ID and /video/embed?video_id=ID.
func (a *address) parseFacebookPlayer() (Link, *Error) {
	for _, name := range [...]string{"v", "video_id"} {
		if id := a.queryValue(name); id != "" {
			return a.facebookVideoLink("", id)
		}
	}
	if id := a.pathPart(1); isFacebookID(id) {
		return a.facebookVideoLink("", id)
	}
	return Link{}, a.refusePath()
}

// facebookVideoLink returns the link of the video with the given id. accountName is the account's name in the link, or "" if the link has none.
func (a *address) facebookVideoLink(accountName, id string) (Link, *Error) {
	if !isFacebookID(id) {
		return Link{}, a.refuseVideoID(id, facebookIDShape)
	}
	l := Link{Platform: Facebook, Kind: Video, ID: id, Canonical: "https://www.facebook.com/reel/" + id}
	if isFacebookName(accountName) && !consistsOf(accountName, 1, 20, isDigit) {
		l.Handle = FoldUsername(accountName)
	}
	return l, nil
}

// facebookAccountLink returns the link of an account. The name is the first part of the path: the
// account's id, or a name that can contain the id.
func (a *address) facebookAccountLink(name string) (Link, *Error) {
	if !a.isAccountHost() {
		return Link{}, a.refusePath()
	}
	if consistsOf(name, 1, 20, isDigit) {
		return a.facebookAccountIDLink(name)
	}
	// The link of "some.name~100063551323670" uses the id, because the account can change the name.
	if chosen, id, ok := strings.Cut(name, "~"); ok && isFacebookName(chosen) && consistsOf(id, 1, 20, isDigit) {
		return a.facebookAccountIDLink(id)
	}
	if !isFacebookName(name) {
		return Link{}, a.refuseHandle(name, facebookNameShape)
	}
	l := Link{Platform: Facebook, Kind: Account, Handle: FoldUsername(name)}
	l.ID, _ = facebookPageID(name)
	l.Canonical = AccountURL(Facebook, l.Handle)
	return l, nil
}

// facebookAccountIDLink returns the link of the account with the given numeric id. It returns an error if the id is not a number of up to 20
// digits.
func (a *address) facebookAccountIDLink(id string) (Link, *Error) {
	if !consistsOf(id, 1, 20, isDigit) {
		return Link{}, a.refuseHandle(id, "a Facebook account id has up to 20 digits, as in facebook.com/profile.php?id=100064550044307")
	}
	return Link{Platform: Facebook, Kind: Account, ID: id, Canonical: AccountURLFromID(Facebook, id)}, nil
}

// facebookShareLink returns the short link of a path such as /share/CODE or /share/v/CODE.
func (a *address) facebookShareLink() (Link, *Error) {
	path, code, length := "share/", a.pathPart(1), 2
	switch word := a.lowerPathPart(1); word {
	// The path /share/p/CODE leads to a post, which can be a video.
	case "v", "r", "p", "reel", "video":
		path, code, length = "share/"+word+"/", a.pathPart(2), 3
	}
	if !isShareCode(code) || len(a.parts) != length {
		return Link{}, a.refusePath()
	}
	return Link{Platform: Facebook, Kind: Short, ID: code, Canonical: "https://www.facebook.com/" + path + code + "/"}, nil
}

// facebookShortLink returns the short link of an address on fb.watch or fb.me. The argument ending
// is the end of the canonical link: "/" or "".
func (a *address) facebookShortLink(host, ending string) (Link, *Error) {
	code, path := a.pathPart(0), ""
	// A short word can precede the code in the path, as in /v/CODE.
	if len(a.parts) == 2 && consistsOf(code, 1, 5, isAlnum) {
		code, path = a.pathPart(1), a.lowerPathPart(0)+"/"
	} else if len(a.parts) > 1 {
		return Link{}, a.refusePath()
	}
	if !isShareCode(code) {
		return Link{}, a.refusePath()
	}
	return Link{Platform: Facebook, Kind: Short, ID: code, Canonical: "https://" + host + "/" + path + code + ending}, nil
}

// facebookInnerLink returns the link that a redirector, an embedded player or a login page has in its query. It returns false for other
// addresses.
func (a *address) facebookInnerLink() (inner string, ok bool) {
	first := a.lowerPathPart(0)
	// The path of the embedded player can begin with the version of the API: /v2.5/plugins/video.php.
	if len(first) > 1 && first[0] == 'v' && isDigit(first[1]) && a.lowerPathPart(1) == "plugins" {
		a.parts = a.parts[1:]
		first = "plugins"
	}
	switch first {
	case "plugins":
		return a.queryValue("href"), a.lowerPathPart(1) == "video.php"
	case "l.php":
		return a.queryValue("u"), true
	case "flx":
		return a.queryValue("u"), a.lowerPathPart(1) == "warn"
	case "login", "login.php", "checkpoint":
		return a.queryValue("next"), true
	}
	return "", false
}

// isFacebookID returns true if s has the form of a Facebook video id. It returns false for a leading zero,
// because the same video would then have two ids.
func isFacebookID(s string) bool { return consistsOf(s, 9, 17, isDigit) && s[0] != '0' }

// isFacebookName returns true if s can be the account name in a link. Such a name is a user name, or the name of a page with its id at the end, as
// facebookPageID accepts it.
func isFacebookName(s string) bool {
	if consistsOf(s, 2, 80, func(c byte) bool { return isIDCharacter(c) || c == '.' }) {
		return s[len(s)-1] != '.'
	}
	if _, ok := facebookPageID(s); !ok || utf8.RuneCountInString(s) > 150 {
		return false
	}
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("-_.", r) {
			return false
		}
	}
	return true
}

// facebookPageID returns the page id at the end of a name such as "Any-Title-100063551323670". It
// returns false if s does not have this form.
func facebookPageID(s string) (id string, ok bool) {
	i := strings.LastIndexByte(s, '-')
	if i < 1 || !consistsOf(s[i+1:], 9, 20, isDigit) {
		return "", false
	}
	return s[i+1:], true
}

// isFacebookReserved returns true if firstPart, the first part of a path in lower case, is a page of Facebook itself and not an account.
func isFacebookReserved(firstPart string) bool {
	switch firstPart {
	case "groups", "events", "photo", "photos", "media", "ads", "stories", "story", "posts", "permalink", "watchparty", "marketplace", "gaming",
		"games", "help", "hashtag", "search", "settings", "notifications", "messages", "friends", "public", "directory", "dialog", "sharer",
		"legal", "policies", "policy", "privacy", "terms", "about", "business", "careers", "home", "bookmarks", "memories",
		"saved", "fundraisers", "donate", "offers", "jobs", "places", "topic", "topics", "notes", "note", "ajax", "api", "tr",
		"badges", "campaign", "recover", "reg", "signup", "sitemap", "find-friends", "live", "apps", "developers", "pay",
		"safetycheck", "feed", "me", "plugins", "flx", "pg", "composer", "creatorstudio", "mobile", "lite", "professional_dashboard",
		"favicon.ico", "robots.txt":
		return true
	}
	return false
}
