package link

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	youtubeIDShape      = "a YouTube id has 11 letters, digits, - and _, as in youtube.com/watch?v=dQw4w9WgXcQ"
	youtubeChannelShape = "a YouTube channel id is UC and 22 letters, digits, - and _, as in youtube.com/channel/UCLqxVugv74EIW3VWh2NOa3Q"
	youtubeHandleShape  = "a YouTube handle has 3 to 30 letters, digits, - _ . and ·, as in youtube.com/@handle"
)

// parseYouTube parses an address whose host belongs to YouTube. The canonical link keeps a form
// such as /c/NAME, because the handle @NAME can belong to another channel.
func (a *address) parseYouTube() (Link, *Error) {
	if inner := a.addressInFragment(); inner != nil {
		if l, err := inner.parseYouTube(); err == nil {
			return l, nil
		}
	}
	if a.base == "youtu.be" {
		if id, ok := leadingYouTubeID(a.pathPart(0)); ok {
			return youtubeVideoLink(id, false), nil
		}
	}
	if name, ok := strings.CutPrefix(a.pathPart(0), "+"); ok {
		// The path /+NAME contains the account's name on Google+. YouTube redirects it to the account's channel.
		a.parts[0] = name
	}
	if handle, ok := strings.CutPrefix(a.pathPart(0), "@"); ok {
		return a.parseYouTubeChannelPage(1, func() (Link, *Error) { return a.youtubeAccountLink("@", strings.TrimPrefix(handle, "@")) })
	}
	switch first := a.lowerPathPart(0); first {
	case "shorts", "live", "embed", "v", "e", "vi", "watch", "video":
		return a.parseYouTubeVideo(first)
	case "channel":
		return a.parseYouTubeChannelPage(2, func() (Link, *Error) {
			if handle, ok := strings.CutPrefix(a.pathPart(1), "@"); ok {
				return a.youtubeAccountLink("@", handle)
			}
			return a.youtubeChannelLink(a.pathPart(1))
		})
	case "c", "user":
		return a.parseYouTubeChannelPage(2, func() (Link, *Error) {
			if handle, ok := strings.CutPrefix(a.pathPart(1), "@"); ok { // a path such as /c/@handle has a handle instead of a name of an older kind
				return a.youtubeAccountLink("@", handle)
			}
			return a.youtubeAccountLink(first+"/", a.pathPart(1))
		})
	case "feed", "feeds", "browse":
		// /feed/UC… and /feeds/videos.xml?channel_id=UC… are lists of the videos of a channel. YouTube Music has /browse/UC….
		for _, id := range [...]string{a.pathPart(1), a.queryValue("channel_id")} {
			if isYouTubeChannel(id) {
				return a.youtubeChannelLink(id)
			}
		}
	case "profile":
		return a.youtubeAccountLink("user/", a.queryValue("user"))
	case "subscription_center":
		return a.youtubeAccountLink("user/", a.queryValue("add_user"))
	}
	if inner, ok := a.youtubeInnerLink(); ok {
		return a.parseInnerLink(inner)
	}
	if isYouTubeReserved(a.lowerPathPart(0)) {
		return Link{}, a.refusePath()
	}
	// A short path with the id in the query is a video: /watch_popup?v=ID, /movie?v=ID, /?v=ID and /NAME?v=ID.
	if id, ok := a.youtubeVideoIDInQuery(); ok && len(a.parts) <= 1 {
		return youtubeVideoLink(id, false), nil
	}
	switch {
	case a.base == "youtu.be" && len(a.parts) > 0:
		return Link{}, a.refuseYouTubeID(a.pathPart(0))
	case len(a.parts) == 0 || !a.isAccountHost() && a.sub != "gaming" || a.base != "youtube.com":
		return Link{}, a.refusePath()
	}
	return a.parseYouTubeChannelPage(1, func() (Link, *Error) { return a.youtubeAccountLink("", a.pathPart(0)) })
}

// parseYouTubeVideo parses the paths of videos, such as /watch?v=ID, /shorts/ID and /embed/ID. firstPart is the first path part in lower case.
func (a *address) parseYouTubeVideo(firstPart string) (Link, *Error) {
	if id, ok := leadingYouTubeID(a.pathPart(1)); ok && !isYouTubePlayerWord(a.lowerPathPart(1)) {
		return youtubeVideoLink(id, firstPart == "shorts"), nil
	}
	if id, ok := a.youtubeVideoIDInQuery(); ok {
		return youtubeVideoLink(id, false), nil
	}
	if isYouTubePlayerWord(a.lowerPathPart(1)) {
		return Link{}, a.refusePath()
	}
	id := a.pathPart(1)
	if firstPart == "watch" && id == "" {
		id = a.queryValue("v")
	}
	return Link{}, a.refuseYouTubeID(id)
}

// isYouTubePlayerWord returns true if s is one of two words that can be in the path /embed/WORD instead of a video id. Both words have 11
// characters, like an id.
func isYouTubePlayerWord(s string) bool { return s == "videoseries" || s == "live_stream" }

// parseYouTubeChannelPage parses the path of a channel's page and returns the channel or a video.
// The path part with index tabIndex names a tab, such as "shorts".
func (a *address) parseYouTubeChannelPage(tabIndex int, channelLink func() (Link, *Error)) (Link, *Error) {
	word := a.lowerPathPart(tabIndex)
	switch word {
	case "shorts", "videos", "video", "live", "watch":
		if id, ok := leadingYouTubeID(a.pathPart(tabIndex + 1)); ok {
			return youtubeVideoLink(id, word == "shorts"), nil
		}
	}
	// In links of former channel pages, the id of a video is in the fragment: /user/NAME#p/u/1/ID.
	if strings.HasPrefix(a.fragment, "p/") {
		if id, ok := leadingYouTubeID(a.fragment[strings.LastIndexByte(a.fragment, '/')+1:]); ok {
			return youtubeVideoLink(id, false), nil
		}
	}
	// Refuse the tab "live", because it leads to the channel's current broadcast, which changes.
	if word == "live" || !consistsOf(word, 0, 20, func(c byte) bool { return c >= 'a' && c <= 'z' || c == '_' }) {
		return Link{}, a.refusePath()
	}
	return channelLink()
}

// youtubeVideoLink returns the link of the video with the given id. If isShorts is true, the canonical link has the form /shorts/ID.
func youtubeVideoLink(id string, isShorts bool) Link {
	canonical := "https://www.youtube.com/watch?v=" + id
	if isShorts {
		canonical = "https://www.youtube.com/shorts/" + id
	}
	return Link{Platform: YouTube, Kind: Video, ID: id, Canonical: canonical}
}

// youtubeChannelLink returns the link of the account with the given channel id.
func (a *address) youtubeChannelLink(id string) (Link, *Error) {
	if !isYouTubeChannel(id) {
		if consistsOf(id, 24, 24, isIDCharacter) && id[:2] == "UC" {
			return Link{}, refuseLastCharacter(id, "YouTube channel id")
		}
		return Link{}, a.refuseHandle(id, youtubeChannelShape)
	}
	return Link{Platform: YouTube, Kind: Account, ID: id, Canonical: AccountURLFromID(YouTube, id)}, nil
}

// refuseYouTubeID returns the error for a video link whose id is not valid.
func (a *address) refuseYouTubeID(id string) *Error {
	if consistsOf(id, 11, 11, isIDCharacter) {
		return refuseLastCharacter(id, "YouTube video id")
	}
	return a.refuseVideoID(id, youtubeIDShape)
}

// refuseLastCharacter returns the error for an id whose only fault is its last character.
func refuseLastCharacter(id, kind string) *Error {
	return newError(UnsupportedLink, "%s is not a possible %s: its last character cannot occur there. Check it for a typing error.", quote(id), kind)
}

// isYouTubeChannel returns true if s can be a channel id. The last 22 characters encode 128 bits, so the last
// character can only be A, Q, g or w.
func isYouTubeChannel(s string) bool {
	return consistsOf(s, 24, 24, isIDCharacter) && s[:2] == "UC" && strings.Contains("AQgw", s[23:])
}

// youtubeAccountLink returns the link of the account with the given name. The prefix is the part of the path before the name: "@", "c/", "user/" or
// "".
func (a *address) youtubeAccountLink(prefix, name string) (Link, *Error) {
	// Some people put a channel id in the place of a name. Nearly all ids contain a digit. A name can hardly have all properties of an id.
	if isYouTubeChannel(name) && strings.ContainsAny(name, "0123456789") {
		return a.youtubeChannelLink(name)
	}
	ok := isYouTubeName(name, 1)
	if prefix == "@" {
		ok = isYouTubeName(name, 3)
	}
	if !ok || prefix == "" && strings.Contains(name, ".") {
		return Link{}, a.refuseHandle(name, youtubeHandleShape)
	}
	name = FoldUsername(name)
	if prefix == "user/" {
		handle := name + YouTubeUserSuffix
		return Link{Platform: YouTube, Kind: Account, Handle: handle, Canonical: AccountURL(YouTube, handle)}, nil
	}
	return Link{Platform: YouTube, Kind: Account, Handle: name, Canonical: "https://www.youtube.com/" + prefix + url.PathEscape(name)}, nil
}

// youtubeInnerLink returns the link that a redirector, a consent page or a similar page has in its query. It returns false for other
// addresses.
func (a *address) youtubeInnerLink() (inner string, ok bool) {
	switch a.lowerPathPart(0) {
	case "attribution_link":
		return a.queryValue("u"), true
	case "redirect", "url":
		return a.queryValue("q"), true
	case "oembed":
		return a.queryValue("url"), true
	case "m", "ml":
		return a.queryValue("continue"), a.sub == "consent"
	case "signin":
		return a.queryValue("next"), true
	case "supported_browsers", "verify_age", "verify_controversy", "das_captcha":
		return a.queryValue("next_url"), true
	}
	return "", false
}

// youtubeVideoIDInQuery returns the first valid video id in a parameter "v" or "vi", or false if there is none. It also searches the fragment, where
// some links have the query.
func (a *address) youtubeVideoIDInQuery() (string, bool) {
	for _, query := range [...]string{a.query, strings.TrimPrefix(a.fragment, "!")} {
		for pair := range splitQuery(query) {
			key, value, _ := strings.Cut(strings.TrimPrefix(pair, "?"), "=")
			if !strings.EqualFold(key, "v") && !strings.EqualFold(key, "vi") {
				continue
			}
			if id, ok := leadingYouTubeID(unescapeQuery(value)); ok {
				return id, true
			}
		}
	}
	return "", false
}

// leadingYouTubeID returns the video id at the start of s, or false if s does not begin with one. Other text can follow the id, as in "ID?t=1".
func leadingYouTubeID(s string) (id string, ok bool) {
	const length = 11
	if len(s) < length {
		return "", false
	}
	id, tail := s[:length], s[length:]
	// An id encodes a 64-bit number. Each of the first 10 characters encodes 6 bits. The last character encodes the remaining 4 bits, so it
	// is one of 16 characters.
	if !consistsOf(id, length, length, isIDCharacter) || !strings.Contains("048AEIMQUYcgkosw", id[length-1:]) {
		return "", false
	}
	// Some programs append one of these words to an id by mistake.
	for _, appended := range [...]string{"share", "feature=", "http"} {
		ok = ok || strings.HasPrefix(tail, appended)
	}
	return id, ok || tail == "" || !isIDCharacter(tail[0])
}

// isYouTubeName returns true if s has the form of a handle or an older account name. A name with a character
// outside of ASCII can be shorter than minLength.
func isYouTubeName(s string, minLength int) bool {
	count, ascii := 0, true
	for _, r := range s {
		ascii = ascii && r < utf8.RuneSelf
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune("-_.·・", r):
			count++
		case unicode.IsMark(r), r == '\u200c', r == '\u200d': // do not count marks and joiners, which are parts of a letter
		default:
			return false
		}
	}
	if !ascii {
		minLength = 1
	}
	return count >= minLength && count <= 30 && len(s) <= 200 && s[len(s)-1] != '.'
}

// isYouTubeReserved returns true if a path whose first part is firstPart leads to a page of YouTube itself, and not to
// an account. firstPart must be in lower case.
func isYouTubeReserved(firstPart string) bool {
	switch firstPart {
	case "playlist", "p", "view_play_list", "watch_videos", "movies", "clip", "source", "hashtag", "feed", "feeds", "results",
		"search", "post", "shared", "trending", "explore", "browse", "gaming", "music", "premium", "kids", "tv",
		"podcasts", "show", "shows", "storefront", "oops", "index", "account", "account_advanced", "t", "s", "howyoutubeworks",
		"about", "ads", "creators", "jobs", "yt", "upload", "logout", "login", "iframe_api", "get_video_info", "get_video",
		"api", "youtubei", "img", "static", "generate_204", "error", "reporthistory", "testtube", "live_chat", "attribution", "audiolibrary",
		"create_channel", "channels", "my_videos", "my_account", "dashboard", "analytics", "comments", "w", "an_webp", "csi", "pagead", "ptracking",
		"opensearch", "copyright_complaint_form", "new", "red", "paid_memberships", "purchases", "playables", "select_site":
		return true
	}
	return false
}
