package link

import "strings"

const (
	instagramCodeShape = "an Instagram code has 10 to 12 letters, digits, - and _ (38 to 40 for a private account), as in instagram.com/reel/DCXkB8LpR2q"
	instagramNameShape = "an Instagram username has 1 to 30 letters, digits, dots and underscores and does not end in a dot, as in instagram.com/username"
)

// longCodeLength is the maximum number of characters in the code of an Instagram post. Almost all codes have one character less.
const longCodeLength = 12

// privateSuffixLength is the number of characters that Instagram appends to the code of a private account's post.
const privateSuffixLength = 28

// parseInstagram parses an address whose host belongs to Instagram.
func (a *address) parseInstagram() (Link, *Error) {
	if a.sub == "l" {
		return a.parseInnerLink(a.queryValue("u"))
	}
	switch first := a.lowerPathPart(0); first {
	case "":
		return Link{}, a.refusePath()
	case "p", "tv", "reel", "reels":
		if a.lowerPathPart(1) == "audio" {
			return Link{}, a.refusePath()
		}
		if a.lowerPathPart(1) == "videos" {
			return a.instagramVideoLink("", first, a.pathPart(2))
		}
		return a.instagramVideoLink("", first, a.pathPart(1))
	case "share":
		return a.instagramShareLink()
	case "_u":
		return a.instagramAccountLink(a.pathPart(1))
	case "accounts", "challenge", "consent":
		return a.parseInnerLink(a.queryValue("next"))
	case "oembed":
		return a.parseInnerLink(a.queryValue("url"))
	}
	if isInstagramReserved(a.lowerPathPart(0)) || !a.isAccountHost() {
		return Link{}, a.refusePath()
	}
	name := strings.TrimPrefix(a.pathPart(0), "@")
	switch second := a.lowerPathPart(1); second {
	case "p", "tv", "reel":
		return a.instagramVideoLink(name, second, a.pathPart(2))
	case "reels":
		if len(a.parts) > 2 {
			return a.instagramVideoLink(name, second, a.pathPart(2))
		}
		return a.instagramAccountLink(name)
	case "", "tagged", "channel", "igtv", "guides", "feed", "followers", "following", "reposts", "saved":
		if len(a.parts) <= 2 {
			return a.instagramAccountLink(name)
		}
	}
	return Link{}, a.refusePath()
}

// instagramVideoLink returns the link of the post with the given code. The path part before the
// code is pathWord. If the link has no account name, accountName is "".
func (a *address) instagramVideoLink(accountName, pathWord, code string) (Link, *Error) {
	if len(code) > privateSuffixLength && consistsOf(code, 1, 2*privateSuffixLength, isIDCharacter) {
		code = code[:len(code)-privateSuffixLength]
	}
	if !consistsOf(code, 10, longCodeLength, isIDCharacter) {
		return Link{}, a.refuseVideoID(code, instagramCodeShape)
	}
	if !isInstagramName(accountName) {
		accountName = ""
	}
	// A post can be opened with any of the path words. Words other than "reel" and "reels", such as "tv", become "p".
	canonical := "https://www.instagram.com/p/" + code + "/"
	if pathWord == "reel" || pathWord == "reels" {
		canonical = "https://www.instagram.com/reel/" + code + "/"
	}
	return Link{Platform: Instagram, Kind: Video, ID: code, Handle: FoldUsername(accountName), Canonical: canonical}, nil
}

// instagramAccountLink returns the link of the account with the given username.
func (a *address) instagramAccountLink(name string) (Link, *Error) {
	if !isInstagramName(name) {
		return Link{}, a.refuseHandle(name, instagramNameShape)
	}
	name = FoldUsername(name)
	return Link{Platform: Instagram, Kind: Account, Handle: name, Canonical: AccountURL(Instagram, name)}, nil
}

// instagramShareLink returns the short link of a path such as /share/CODE, /share/reel/CODE, /share/p/CODE or /share/tv/CODE.
func (a *address) instagramShareLink() (Link, *Error) {
	path, code, length := "share/", a.pathPart(1), 2
	switch word := a.lowerPathPart(1); word {
	case "reel", "reels", "p", "tv":
		path, code, length = "share/"+word+"/", a.pathPart(2), 3
	}
	if !isShareCode(code) || len(a.parts) != length {
		return Link{}, a.refusePath()
	}
	return Link{Platform: Instagram, Kind: Short, ID: code, Canonical: "https://www.instagram.com/" + path + code + "/"}, nil
}

// isInstagramName returns true if s has the form of an Instagram username.
func isInstagramName(s string) bool {
	return consistsOf(s, 1, 30, func(c byte) bool { return isAlnum(c) || c == '_' || c == '.' }) && s[len(s)-1] != '.'
}

// isInstagramReserved returns true if firstPart, the first part of a path in lower case, is a page of Instagram itself and not an account.
func isInstagramReserved(firstPart string) bool {
	switch firstPart {
	case "explore", "stories", "direct", "about", "legal", "developer", "api", "graphql", "static", "oauth",
		"session", "emails", "web", "directory", "notifications", "your_activity", "data", "s", "_n", "n", "ar":
		return true
	}
	return false
}
