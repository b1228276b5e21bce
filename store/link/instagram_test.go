package link_test

import (
	"strings"

	"github.com/reeltally/reeltally/store/link"
)

func acceptedInstagramLinks() []acceptedLink {
	const id = instagramID
	user := accountLink(link.Instagram, "user.name_1", "https://www.instagram.com/user.name_1/")
	old := link.Link{Platform: link.Instagram, Kind: link.Video, ID: "aye83DjauH", Canonical: "https://www.instagram.com/p/aye83DjauH/"}
	dashed := link.Link{Platform: link.Instagram, Kind: link.Video, ID: "-Cmh1cukG2", Canonical: "https://www.instagram.com/p/-Cmh1cukG2/"}
	underscored := link.Link{Platform: link.Instagram, Kind: link.Video, ID: "_Cmh1cukG2", Canonical: "https://www.instagram.com/p/_Cmh1cukG2/"}

	return []acceptedLink{
		{"reel", "https://www.instagram.com/reel/" + id + "/", instagramVideo("", "reel")},
		{"reel without final slash", "https://www.instagram.com/reel/" + id, instagramVideo("", "reel")},
		{"reel without www", "https://instagram.com/reel/" + id + "/", instagramVideo("", "reel")},
		{"reel on the mobile host", "https://m.instagram.com/reel/" + id + "/", instagramVideo("", "reel")},
		{"reel link shared from the application", "https://www.instagram.com/reel/" + id + "/?igsh=MzRlODBiNWFlZA==", instagramVideo("", "reel")},
		{"reel link shared from an older application", "https://www.instagram.com/reel/" + id + "/?igshid=YmMyMTA2M2Y=", instagramVideo("", "reel")},
		{"reel link copied from the browser", "https://www.instagram.com/reel/" + id + "/?utm_source=ig_web_copy_link&igsh=x", instagramVideo("", "reel")},
		{"reel link with a language parameter", "https://www.instagram.com/reel/" + id + "/?hl=en", instagramVideo("", "reel")},
		{"reel link with a query and no slash before it", "https://www.instagram.com/reel/" + id + "?hl=de", instagramVideo("", "reel")},
		{"reel at the end of a sentence", "https://www.instagram.com/reel/" + id + "/.", instagramVideo("", "reel")},
		{"/reels/ link", "https://www.instagram.com/reels/" + id + "/", instagramVideo("", "reel")},
		{"/reels/videos/ link", "https://www.instagram.com/reels/videos/" + id + "/", instagramVideo("", "reel")},
		{"reel link with the username in the path", "https://www.instagram.com/User.Name_1/reel/" + id + "/", instagramVideo("user.name_1", "reel")},
		{"reel link with a query, and with the username in the path", "https://www.instagram.com/user.name_1/reel/" + id + "/?hl=en", instagramVideo("user.name_1", "reel")},
		{"/reels/ link with the username in the path", "https://www.instagram.com/user.name_1/reels/" + id + "/", instagramVideo("user.name_1", "reel")},
		{"link to an embedded reel", "https://www.instagram.com/reel/" + id + "/embed/", instagramVideo("", "reel")},
		{"link to an embedded reel with its caption", "https://www.instagram.com/reel/" + id + "/embed/captioned/?cr=1&v=14", instagramVideo("", "reel")},
		{"post", "https://www.instagram.com/p/" + id + "/", instagramVideo("", "p")},
		{"post link on instagr.am", "http://instagr.am/p/" + id + "/", instagramVideo("", "p")},
		{"post link on www.instagr.am", "https://www.instagr.am/p/" + id, instagramVideo("", "p")},
		{"post link that opens the third picture", "https://www.instagram.com/p/" + id + "/?img_index=3", instagramVideo("", "p")},
		{"post link with taken-by in the query", "https://www.instagram.com/p/" + id + "/?taken-by=someone", instagramVideo("", "p")},
		{"post link with the username in the path", "https://www.instagram.com/user.name_1/p/" + id + "/", instagramVideo("user.name_1", "p")},
		{"link to a comment on a post", "https://www.instagram.com/p/" + id + "/c/17900000000000000/", instagramVideo("", "p")},
		{"link to an embedded post", "http://instagram.com/p/" + id + "/embed/", instagramVideo("", "p")},
		{"post link with the path part P in upper case", "https://www.instagram.com/P/" + id + "/", instagramVideo("", "p")},
		{"post link with an invalid username in the path", "https://www.instagram.com/u~1/p/" + id + "/", instagramVideo("", "p")},
		{"/tv/ link", "https://www.instagram.com/tv/" + id + "/", instagramVideo("", "p")},
		{"/tv/ link with the username in the path", "https://www.instagram.com/user.name_1/tv/" + id + "/", instagramVideo("user.name_1", "p")},
		{"post link with a code of ten characters", "https://instagram.com/p/aye83DjauH/?foo=bar#abc", old},
		{"code that begins with a dash", "https://instagram.com/p/-Cmh1cukG2/", dashed},
		{"code that begins with an underscore", "https://instagram.com/p/_Cmh1cukG2/", underscored},
		{"code of twelve characters", "https://www.instagram.com/reel/DCXkB8LpR2qA/?igsh=x", instagramReel("DCXkB8LpR2qA", "")},
		{"code of twelve characters that ends in a dash", "https://www.instagram.com/user.name_1/reel/DCXkB8LpR2q-", instagramReel("DCXkB8LpR2q-", "user.name_1")},
		{"code of eleven characters that ends in a dash", "https://www.instagram.com/reel/DCXkB8LpR2-/", instagramReel("DCXkB8LpR2-", "")},
		{"code of twelve characters that ends in an underscore", "https://www.instagram.com/reel/DCXkB8LpR2q_/", instagramReel("DCXkB8LpR2q_", "")},
		{"underscore directly after a link with a code of eleven characters", "https://www.instagram.com/reel/" + id + "_", instagramVideo("", "reel")},
		{"reel link with a code of twelve characters and the private-account suffix", "https://www.instagram.com/reel/DCXkB8LpR2q-" + privateSuffix + "/", instagramReel("DCXkB8LpR2q-", "")},
		{"reel link whose code ends with the private-account suffix", "https://www.instagram.com/reel/" + id + privateSuffix + "/", instagramVideo("", "reel")},
		{"post link whose code ends with the private-account suffix", "https://www.instagram.com/p/" + id + privateSuffix, instagramVideo("", "p")},
		{"post link with a code of ten characters and the private-account suffix", "https://www.instagram.com/p/aye83DjauH" + privateSuffix + "/", old},
		{"redirector", "https://l.instagram.com/?u=https%3A%2F%2Fwww.instagram.com%2Freel%2F" + id + "%2F&e=AT0", instagramVideo("", "reel")},
		{"redirector to a TikTok video", "https://l.instagram.com/?u=https%3A%2F%2Fwww.tiktok.com%2F%40user%2Fvideo%2F" + tiktokID + "&e=AT0", tiktokVideo("user")},
		{"login page", "https://www.instagram.com/accounts/login/?next=/reel/" + id + "/", instagramVideo("", "reel")},
		{"login page with a percent-encoded link in the query", "https://www.instagram.com/accounts/login/?next=https%3A%2F%2Fwww.instagram.com%2Fp%2F" + id + "%2F&is_from_rle", instagramVideo("", "p")},
		{"oEmbed", "https://api.instagram.com/oembed?url=https%3A%2F%2Fwww.instagram.com%2Fp%2F" + id, instagramVideo("", "p")},

		{"short link of a reel", "https://www.instagram.com/share/reel/BALvq0iKYQ", shortLink(link.Instagram, "BALvq0iKYQ", "https://www.instagram.com/share/reel/BALvq0iKYQ/")},
		{"short link of a post", "https://www.instagram.com/share/p/BADlFyfBvm/", shortLink(link.Instagram, "BADlFyfBvm", "https://www.instagram.com/share/p/BADlFyfBvm/")},
		{"short link of an unknown kind", "https://www.instagram.com/share/BAFg0zXyZ1", shortLink(link.Instagram, "BAFg0zXyZ1", "https://www.instagram.com/share/BAFg0zXyZ1/")},
		{"short link that begins with an underscore", "instagram.com/share/reel/_vZ4p9NQ3/?igsh=x", shortLink(link.Instagram, "_vZ4p9NQ3", "https://www.instagram.com/share/reel/_vZ4p9NQ3/")},

		{"account", "https://www.instagram.com/user.name_1/", user},
		{"account without slash", "https://www.instagram.com/user.name_1", user},
		{"account without scheme", "instagram.com/user.name_1", user},
		{"account link on instagr.am", "https://instagr.am/user.name_1", user},
		{"account link with an upper-case username", "https://www.instagram.com/USER.Name_1/", user},
		{"account shared from the application", "https://www.instagram.com/user.name_1?igsh=MWQ1ZGUxMzBkMA==&utm_source=qr", user},
		{"link to the reels tab of an account", "https://www.instagram.com/user.name_1/reels/", user},
		{"link to the tagged posts of an account", "https://www.instagram.com/user.name_1/tagged/?hl=en", user},
		{"/_u/ link to an account", "https://www.instagram.com/_u/user.name_1", user},
		{"account link with @ before the username", "https://www.instagram.com/@user.name_1", user},
		{"account at the end of a sentence", "https://www.instagram.com/user.name_1.", user},
		{"login page with an account path in the query", "https://www.instagram.com/accounts/login/?next=%2Fuser.name_1%2F", user},
		{"username of one character", "https://www.instagram.com/x", accountLink(link.Instagram, "x", "https://www.instagram.com/x/")},
		{"username of 30 characters", "https://www.instagram.com/" + strings.Repeat("a", 30), accountLink(link.Instagram, strings.Repeat("a", 30), "https://www.instagram.com/"+strings.Repeat("a", 30)+"/")},
		{"username that begins with a reserved word", "https://www.instagram.com/explore.life/", accountLink(link.Instagram, "explore.life", "https://www.instagram.com/explore.life/")},
		{"username of digits only", "https://www.instagram.com/433/", accountLink(link.Instagram, "433", "https://www.instagram.com/433/")},
	}
}

func refusedInstagramLinks() []refusedLink {
	const ig = link.UnsupportedLink
	return []refusedLink{
		{"Instagram front page", "https://www.instagram.com/", ig, "front page"},
		{"Instagram sound", "https://www.instagram.com/reels/audio/1234567890123456/", ig, "/reels/audio/"},
		{"Instagram story", "https://www.instagram.com/stories/user/3412345678901234567/", ig, "/stories/"},
		{"Instagram highlight", "https://www.instagram.com/stories/highlights/17900000000000000/", ig, "/stories/"},
		{"Instagram shared highlight", "https://www.instagram.com/s/aGlnaGxpZ2h0OjE3?story_media_id=1", ig, "/s/"},
		{"Instagram hashtag", "https://www.instagram.com/explore/tags/funny/", ig, "/explore/"},
		{"Instagram place", "https://www.instagram.com/explore/locations/123/name/", ig, "/explore/"},
		{"Instagram messages", "https://www.instagram.com/direct/inbox/", ig, "/direct/"},
		{"Instagram settings", "https://www.instagram.com/accounts/edit/", ig, "/accounts/"},
		{"Instagram login without a link", "https://www.instagram.com/accounts/login/", ig, "/accounts/login"},
		{"Instagram legal page", "https://www.instagram.com/legal/terms/", ig, "/legal/"},
		{"Instagram about page", "https://www.instagram.com/about/us/", ig, "/about/"},
		{"Instagram developer page", "https://www.instagram.com/developer/", ig, "/developer"},
		{"Instagram live stream", "https://www.instagram.com/user/live/", ig, "/user/live"},
		{"Instagram reels feed", "https://www.instagram.com/reels/", ig, "The link to www.instagram.com names no video id"},
		{"Instagram reel without code", "https://www.instagram.com/reel/", ig, "The link to www.instagram.com names no video id"},
		{"Instagram code that is too short", "https://www.instagram.com/reel/DCXkB8LpR/", ig, "10 to 12"},
		{"Instagram code that is too long", "https://www.instagram.com/reel/DCXkB8LpR2qqq/", ig, "10 to 12"},
		{"Instagram code with an incomplete private-account suffix", "https://www.instagram.com/reel/" + instagramID + privateSuffix[:20], ig, "10 to 12"},
		{"Instagram code with a wrong character", "https://www.instagram.com/reel/DCXkB8LpR2+/", ig, "10 to 12"},
		{"Instagram code encoded twice", "https://www.instagram.com/reel/%2544CXkB8LpR2q/", ig, "%44CX"},
		{"Instagram username of 31 characters", "https://www.instagram.com/" + strings.Repeat("a", 31), ig, "1 to 30"},
		{"Instagram username with a dash", "https://www.instagram.com/user-name/", ig, "user-name"},
		{"Instagram username followed by ~ and a number", "https://www.instagram.com/user~17841400000000000/", ig, "user~1784"},
		{"Instagram help page", "https://help.instagram.com/581066165581870", ig, "help.instagram.com"},
		{"Instagram share without code", "https://www.instagram.com/share/", ig, "/share"},
		{"Instagram share of a reel without code", "https://www.instagram.com/share/reel/", ig, "/share/reel"},
		{"Instagram application link", "instagram://user?username=user", ig, "application"},
		{"Instagram redirector without a link", "https://l.instagram.com/", ig, "front page"},
		{"Instagram redirector to a Facebook redirector", "https://l.instagram.com/?u=https%3A%2F%2Fl.facebook.com%2Fl.php%3Fu%3Dhttps%253A%252F%252Fyoutu.be%252F" + youtubeID, ig, "innermost"},
	}
}
