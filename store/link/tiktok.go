package link

import "strings"

const (
	tiktokIDShape     = "a TikTok id has 15 to 20 digits and does not begin with 0, as in tiktok.com/@handle/video/7106594312292453675"
	tiktokHandleShape = "a TikTok handle has 2 to 24 letters, digits, dots and underscores and does not end in a dot, as in tiktok.com/@handle"
)

// parseTikTok parses an address whose host belongs to TikTok.
func (a *address) parseTikTok() (Link, *Error) {
	if inner := a.addressInFragment(); inner != nil {
		// Links of TikTok's former desktop site have the video in the fragment: /foryou?lang=en#/@user/video/ID.
		if l, err := inner.parseTikTok(); err == nil {
			return l, nil
		}
	}
	if (a.sub == "vm" || a.sub == "vt") && !strings.HasPrefix(a.pathPart(0), "@") {
		if a.lowerPathPart(0) == "t" {
			a.parts = a.parts[1:]
		}
		return a.tiktokShortLink(0, "https://"+a.host+"/")
	}
	// Remove a language or application prefix from the path, as in /en/@user, /i18n/share/video/ID and /h5/share/usr/ID.html.
	if first := a.lowerPathPart(0); first == "i18n" || first == "h5" || isLocale(first) && strings.HasPrefix(a.pathPart(1), "@") {
		a.parts = a.parts[1:]
	}
	if handle, ok := strings.CutPrefix(a.pathPart(0), "@"); ok {
		return a.parseTikTokProfile(strings.TrimPrefix(handle, "@"))
	}
	switch a.lowerPathPart(0) {
	case "video", "photo":
		return a.tiktokVideoLink("", a.lowerPathPart(0), a.pathPart(1))
	case "v":
		return a.tiktokVideoLink("", "video", a.pathPart(1))
	case "share":
		switch kind := a.lowerPathPart(1); kind {
		case "video", "photo", "item":
			return a.tiktokVideoLink("", kind, a.pathPart(2))
		case "user", "usr":
			return a.tiktokAccountIDLink(a.pathPart(2))
		}
	case "embed":
		i := 1
		if version := a.lowerPathPart(1); len(version) > 1 && version[0] == 'v' && isDigit(version[1]) && len(version) < 4 {
			i = 2
		}
		if handle, ok := strings.CutPrefix(a.pathPart(i), "@"); ok {
			return a.tiktokAccountLink(handle)
		}
		return a.tiktokVideoLink("", "video", a.pathPart(i))
	case "player":
		return a.tiktokVideoLink("", "video", a.pathPart(2))
	case "t":
		host := "www.tiktok.com"
		if a.sub == "lite" {
			host = a.host
		}
		return a.tiktokShortLink(1, "https://"+host+"/t/")
	case "", "foryou", "trending", "following", "explore":
		if id := a.tiktokVideoIDInQuery(); id != "" {
			return a.tiktokVideoLink("", "video", id)
		}
	case "link":
		return a.parseInnerLink(a.queryValue("target"))
	case "login":
		return a.parseInnerLink(a.queryValue("redirect_url"))
	case "oembed":
		return a.parseInnerLink(a.queryValue("url"))
	}
	return Link{}, a.refusePath()
}

// parseTikTokProfile parses a path that begins with "/@" and a handle, and returns the account or one of its videos.
func (a *address) parseTikTokProfile(handle string) (Link, *Error) {
	switch kind := a.lowerPathPart(1); kind {
	case "video", "photo":
		id := a.pathPart(2)
		if !isTikTokID(id) {
			if other := a.tiktokVideoIDInQuery(); other != "" {
				id = other
			}
		}
		return a.tiktokVideoLink(handle, kind, id)
	case "", "liked", "favorites", "reposts", "reposted":
		if len(a.parts) <= 2 && (a.isAccountHost() || a.sub == "vm" || a.sub == "vt") {
			return a.tiktokAccountLink(handle)
		}
	}
	return Link{}, a.refusePath()
}

// tiktokVideoLink returns the link of the video with the given id, or of the slideshow if kind is "photo". If the handle is not valid, the link
// has no handle.
func (a *address) tiktokVideoLink(handle, kind, id string) (Link, *Error) {
	id = strings.TrimSuffix(id, ".html")
	if !isTikTokID(id) {
		return Link{}, a.refuseVideoID(id, tiktokIDShape)
	}
	if !isTikTokHandle(handle) || isTikTokID(handle) {
		handle = ""
	}
	if kind != "photo" {
		kind = "video"
	}
	handle = FoldUsername(handle)
	return Link{
		Platform:  TikTok,
		Kind:      Video,
		ID:        id,
		Handle:    handle,
		Canonical: "https://www.tiktok.com/@" + handle + "/" + kind + "/" + id,
	}, nil
}

// tiktokAccountLink returns the link of the account with the given handle. TikTok also accepts a
// secUid or a numeric id in place of the handle.
func (a *address) tiktokAccountLink(handle string) (Link, *Error) {
	l := Link{Platform: TikTok, Kind: Account}
	switch {
	case isSecUID(handle):
		l.ID, l.Canonical = handle, AccountURLFromID(TikTok, handle)
		return l, nil
	case !isTikTokHandle(handle):
		return Link{}, a.refuseHandle(handle, tiktokHandleShape)
	case isTikTokID(handle): // the number can be a handle or a numeric id, so the link gets both
		l.ID = handle
	}
	l.Handle = FoldUsername(handle)
	l.Canonical = AccountURL(TikTok, l.Handle)
	return l, nil
}

// tiktokAccountIDLink returns the link of the account with the given numeric id. It returns an error if the id is not a number of 4 to 20 digits.
func (a *address) tiktokAccountIDLink(id string) (Link, *Error) {
	id = strings.TrimSuffix(id, ".html")
	if !consistsOf(id, 4, 20, isDigit) {
		return Link{}, a.refuseHandle(id, "a TikTok account id has 4 to 20 digits, as in tiktok.com/share/user/6567659045795758085")
	}
	return Link{Platform: TikTok, Kind: Account, ID: id, Canonical: AccountURLFromID(TikTok, id)}, nil
}

// tiktokShortLink returns a short link. Its code is the part of the path with the index i. Its canonical link
// is prefix + code + "/".
func (a *address) tiktokShortLink(i int, prefix string) (Link, *Error) {
	code := a.pathPart(i)
	if !isShareCode(code) || len(a.parts) != i+1 {
		return Link{}, a.refusePath()
	}
	return Link{Platform: TikTok, Kind: Short, ID: code, Canonical: prefix + code + "/"}, nil
}

// tiktokVideoIDInQuery returns the video id in the query, as in a link to a feed such as tiktok.com/foryou?item_id=ID. It returns "" if the query
// has no video id.
func (a *address) tiktokVideoIDInQuery() string {
	for _, name := range [...]string{"item_id", "shareId", "share_item_id"} {
		if id := a.queryValue(name); isTikTokID(id) {
			return id
		}
	}
	return ""
}

// isTikTokID returns true if s has the form of a TikTok video id. It returns false for a leading zero, because
// the same video would then have two ids.
func isTikTokID(s string) bool { return consistsOf(s, 15, 20, isDigit) && s[0] != '0' }

// isTikTokHandle returns true if s has the form of a TikTok handle.
func isTikTokHandle(s string) bool {
	return consistsOf(s, 2, 24, func(c byte) bool { return isAlnum(c) || c == '_' || c == '.' }) && s[len(s)-1] != '.'
}

// isSecUID returns true if s has the form of a secUid. A secUid is a text that identifies a TikTok account. The account also has a numeric
// id.
func isSecUID(s string) bool {
	return strings.HasPrefix(s, "MS4wLjAB") && consistsOf(s, 40, 120, isIDCharacter)
}

// isShareCode returns true if s has the form of the code in a short link of TikTok, Instagram or Facebook.
func isShareCode(s string) bool { return consistsOf(s, 5, 40, isIDCharacter) }
