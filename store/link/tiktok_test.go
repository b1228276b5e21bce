package link_test

import (
	"strings"

	"github.com/reeltally/reeltally/store/link"
)

func acceptedTikTokLinks() []acceptedLink {
	const id = tiktokID
	photo := tiktokVideo("user")
	photo.Canonical = "https://www.tiktok.com/@user/photo/" + id
	photoWithoutHandle := tiktokVideo("")
	photoWithoutHandle.Canonical = "https://www.tiktok.com/@/photo/" + id
	user := accountLink(link.TikTok, "user", "https://www.tiktok.com/@user")
	numeric := accountLinkWithID(link.TikTok, "6567659045795758085", "https://www.tiktok.com/share/user/6567659045795758085")
	shortest, longest := tiktokVideo("user"), tiktokVideo("user")
	shortest.ID, shortest.Canonical = "710659431229245", "https://www.tiktok.com/@user/video/710659431229245"
	longest.ID, longest.Canonical = "71065943122924536750", "https://www.tiktok.com/@user/video/71065943122924536750"

	return []acceptedLink{
		{"video", "https://www.tiktok.com/@user/video/" + id, tiktokVideo("user")},
		{"video without www", "https://tiktok.com/@user/video/" + id, tiktokVideo("user")},
		{"video on the mobile host", "https://m.tiktok.com/@user/video/" + id, tiktokVideo("user")},
		{"video on www.m.tiktok.com", "https://www.m.tiktok.com/@user/video/" + id, tiktokVideo("user")},
		{"video on a regional host", "https://us.tiktok.com/@user/video/" + id, tiktokVideo("user")},
		{"video link copied from the browser", "https://www.tiktok.com/@user/video/" + id + "?is_from_webapp=1&sender_device=pc&web_id=7211", tiktokVideo("user")},
		{"video link copied from the application", "https://www.tiktok.com/@user/video/" + id + "?_r=1&u_code=dgf&preview_pb=0&language=en&_d=d9&share_item_id=7000000000000000001&timestamp=1650000000", tiktokVideo("user")},
		{"video link with a language parameter", "https://www.tiktok.com/@user/video/" + id + "?lang=de-DE", tiktokVideo("user")},
		{"video link with a language prefix in the path", "https://www.tiktok.com/en/@user/video/" + id, tiktokVideo("user")},
		{"video link with a path part after the id", "https://www.tiktok.com/@user/video/" + id + "/analytics", tiktokVideo("user")},
		{"mobile video link that ends in .html", "https://m.tiktok.com/@user/video/" + id + ".html", tiktokVideo("user")},
		{"video id of 15 digits", "https://www.tiktok.com/@user/video/710659431229245", shortest},
		{"video id of 20 digits", "https://www.tiktok.com/@user/video/71065943122924536750", longest},
		{"video link with an upper-case handle", "https://www.tiktok.com/@User.Name_1/video/" + id, tiktokVideo("user.name_1")},
		{"video link with a handle of digits", "https://www.tiktok.com/@123456/video/" + id, tiktokVideo("123456")},
		{"video link with the secUid in place of the handle", "https://www.tiktok.com/@" + secUID + "/video/" + id, tiktokVideo("")},
		{"video link with the numeric account id in place of the handle", "https://www.tiktok.com/@6567659045795758085/video/" + id, tiktokVideo("")},
		{"video link with an empty handle", "https://www.tiktok.com/@/video/" + id, tiktokVideo("")},
		{"video link with an invalid handle", "https://www.tiktok.com/@us~er/video/" + id, tiktokVideo("")},
		{"video link with the video id in the query", "https://www.tiktok.com/@user/video/is_copy_url=1&is_from_webapp=v1&item_id=" + id, tiktokVideo("user")},
		{"video link with the path part Video in upper case", "https://www.tiktok.com/@user/Video/" + id, tiktokVideo("user")},
		{"slideshow", "https://www.tiktok.com/@user/photo/" + id, photo},
		{"slideshow link with a query", "https://www.tiktok.com/@user/photo/" + id + "?_t=8n&_r=1", photo},
		{"slideshow link with an empty handle", "https://www.tiktok.com/@/photo/" + id, photoWithoutHandle},
		{"/share/video/ link", "https://www.tiktok.com/share/video/" + id, tiktokVideo("")},
		{"/share/photo/ link", "https://www.tiktok.com/share/photo/" + id, photoWithoutHandle},
		{"/share/item/ link", "https://m.tiktok.com/share/item/" + id, tiktokVideo("")},
		{"link of a data export on tiktokv.com", "https://www.tiktokv.com/share/video/" + id + "/", tiktokVideo("")},
		{"link of a data export on tiktokv.com without www", "http://tiktokv.com/share/video/" + id, tiktokVideo("")},
		{"link of a data export on tiktokv.us", "https://www.tiktokv.us/share/video/" + id + "/", tiktokVideo("")},
		{"link of a data export on tiktokv.eu", "https://www.tiktokv.eu/share/video/" + id + "/", tiktokVideo("")},
		{"/i18n/share/video/ link", "https://t.tiktok.com/i18n/share/video/" + id + "/?region=us", tiktokVideo("")},
		{"/v/ link", "https://www.tiktok.com/v/" + id, tiktokVideo("")},
		{"/v/ link on the mobile host", "https://m.tiktok.com/v/" + id + ".html", tiktokVideo("")},
		{"/v/ link with a query", "https://m.tiktok.com/v/" + id + ".html?u_code=d&share_app_name=musically", tiktokVideo("")},
		{"embed", "https://www.tiktok.com/embed/" + id, tiktokVideo("")},
		{"embed v2", "https://www.tiktok.com/embed/v2/" + id, tiktokVideo("")},
		{"embed v2 link with a language parameter", "https://www.tiktok.com/embed/v2/" + id + "?lang=en-US&referrer=https%3A%2F%2Fexample.com", tiktokVideo("")},
		{"embed v3", "https://www.tiktok.com/embed/v3/" + id, tiktokVideo("")},
		{"player", "https://www.tiktok.com/player/v1/" + id + "?autoplay=1", tiktokVideo("")},
		{"/video/ link without an account", "https://www.tiktok.com/video/" + id, tiktokVideo("")},
		{"feed link with item_id in the query", "https://www.tiktok.com/foryou?is_copy_url=1&is_from_webapp=v1&item_id=" + id, tiktokVideo("")},
		{"feed link with shareId in the query", "https://www.tiktok.com/trending?shareId=" + id, tiktokVideo("")},
		{"front page link with item_id in the query", "https://www.tiktok.com/?item_id=" + id + "#/foryou", tiktokVideo("")},
		{"feed link with the video link in the fragment", "https://www.tiktok.com/foryou?lang=en#/@user/video/" + id, tiktokVideo("user")},
		{"oEmbed", "https://www.tiktok.com/oembed?url=https%3A%2F%2Fwww.tiktok.com%2F%40user%2Fvideo%2F" + id, tiktokVideo("user")},
		{"oEmbed address with an inner link that is not percent-encoded", "https://www.tiktok.com/oembed?url=https://www.tiktok.com/@user/video/" + id, tiktokVideo("user")},
		{"login page", "https://www.tiktok.com/login?redirect_url=https%3A%2F%2Fwww.tiktok.com%2F%40user%2Fvideo%2F" + id + "&lang=en", tiktokVideo("user")},
		{"bio link to a YouTube video", "https://www.tiktok.com/link/v2?aid=1988&scene=bio_url&target=https%3A%2F%2Fyoutu.be%2F" + youtubeID, youtubeVideo()},

		{"vm.tiktok.com link", "https://vm.tiktok.com/ZMeAbc123/", shortLink(link.TikTok, "ZMeAbc123", "https://vm.tiktok.com/ZMeAbc123/")},
		{"vm.tiktok.com link without a final slash", "https://vm.tiktok.com/ZSe4FqkKd", shortLink(link.TikTok, "ZSe4FqkKd", "https://vm.tiktok.com/ZSe4FqkKd/")},
		{"vm.tiktok.com link without a scheme", "vm.tiktok.com/ZSe4FqkKe", shortLink(link.TikTok, "ZSe4FqkKe", "https://vm.tiktok.com/ZSe4FqkKe/")},
		{"vm.tiktok.com link with http and a query", "http://vm.tiktok.com/ZSe4FqkKf/?k=1", shortLink(link.TikTok, "ZSe4FqkKf", "https://vm.tiktok.com/ZSe4FqkKf/")},
		{"vt.tiktok.com link", "https://vt.tiktok.com/ZS8abcDEF/", shortLink(link.TikTok, "ZS8abcDEF", "https://vt.tiktok.com/ZS8abcDEF/")},
		{"vt.tiktok.com link with the host in upper case", "https://VT.TIKTOK.COM/ZS8abcDEG/", shortLink(link.TikTok, "ZS8abcDEG", "https://vt.tiktok.com/ZS8abcDEG/")},
		{"vt.tiktok.com/t/ link", "https://vt.tiktok.com/t/ZS8abcDEH/", shortLink(link.TikTok, "ZS8abcDEH", "https://vt.tiktok.com/ZS8abcDEH/")},
		{"tiktok.com/t/ link", "https://www.tiktok.com/t/ZTRC5xgJp", shortLink(link.TikTok, "ZTRC5xgJp", "https://www.tiktok.com/t/ZTRC5xgJp/")},
		{"tiktok.com/t/ link without www", "https://tiktok.com/t/ZTRC5xgJq/", shortLink(link.TikTok, "ZTRC5xgJq", "https://www.tiktok.com/t/ZTRC5xgJq/")},
		{"short link of TikTok Lite", "https://lite.tiktok.com/t/ZSuGXKdsU/", shortLink(link.TikTok, "ZSuGXKdsU", "https://lite.tiktok.com/t/ZSuGXKdsU/")},
		{"short link with a long code", "https://lite.tiktok.com/t/ZS9AJY6f4n6Sw-GQnDP/", shortLink(link.TikTok, "ZS9AJY6f4n6Sw-GQnDP", "https://lite.tiktok.com/t/ZS9AJY6f4n6Sw-GQnDP/")},
		{"short link at the end of a sentence", "https://vm.tiktok.com/ZMeAbc124.", shortLink(link.TikTok, "ZMeAbc124", "https://vm.tiktok.com/ZMeAbc124/")},
		{"short link with a final slash at the end of a sentence", "https://vm.tiktok.com/ZMeAbc125/.", shortLink(link.TikTok, "ZMeAbc125", "https://vm.tiktok.com/ZMeAbc125/")},

		{"account", "https://www.tiktok.com/@user", user},
		{"account without scheme and www", "tiktok.com/@user", user},
		{"account on the mobile host", "https://m.tiktok.com/@user/", user},
		{"account link with a language parameter", "https://www.tiktok.com/@user?lang=en", user},
		{"account shared from the application", "https://www.tiktok.com/@user?_t=8abc&_r=1", user},
		{"account link with an upper-case handle", "https://www.tiktok.com/@USER", user},
		{"account with two at signs", "https://www.tiktok.com/@@user?_t=8abc", user},
		{"account with an encoded at sign", "https://www.tiktok.com/%40user", user},
		{"account link with a language prefix in the path", "https://www.tiktok.com/de-DE/@user", user},
		{"link to an embedded account", "https://www.tiktok.com/embed/@user", user},
		{"link to a tab of an account", "https://www.tiktok.com/@user/liked", user},
		{"account on the host of short links", "https://vm.tiktok.com/@user", user},
		{"account at the end of a sentence", "https://www.tiktok.com/@user.", user},
		{"handle with dots and underscores", "https://www.tiktok.com/@_us.er_", accountLink(link.TikTok, "_us.er_", "https://www.tiktok.com/@_us.er_")},
		{"handle of two characters", "https://www.tiktok.com/@ab", accountLink(link.TikTok, "ab", "https://www.tiktok.com/@ab")},
		{"handle of 24 characters", "https://www.tiktok.com/@" + strings.Repeat("a", 24), accountLink(link.TikTok, strings.Repeat("a", 24), "https://www.tiktok.com/@"+strings.Repeat("a", 24))},
		{"handle of digits only", "https://www.tiktok.com/@1234567", accountLink(link.TikTok, "1234567", "https://www.tiktok.com/@1234567")},
		{"account link with a secUid in place of the handle", "https://www.tiktok.com/@" + secUID, accountLinkWithID(link.TikTok, secUID, "https://www.tiktok.com/@"+secUID)},
		{"numeric account id in place of the handle", "https://www.tiktok.com/@6820838815978423302", link.Link{
			Platform: link.TikTok, Kind: link.Account, ID: "6820838815978423302", Handle: "6820838815978423302",
			Canonical: "https://www.tiktok.com/@6820838815978423302",
		}},
		{"/share/user/ link with a numeric account id", "https://www.tiktok.com/share/user/6567659045795758085", numeric},
		{"/h5/share/usr/ link with a numeric account id", "https://m.tiktok.com/h5/share/usr/6567659045795758085.html", numeric},
		{"/h5/share/usr/ link with a query", "https://m.tiktok.com/h5/share/usr/6567659045795758085.html?_d=sec&sec_uid=" + secUID, numeric},
		{"/i18n/share/user/ link with a numeric account id", "https://m.tiktok.com/i18n/share/user/6567659045795758085/", numeric},
	}
}

func refusedTikTokLinks() []refusedLink {
	const tt = link.UnsupportedLink
	return []refusedLink{
		{"TikTok front page", "https://www.tiktok.com/", tt, "front page"},
		{"TikTok front page to which an expired short link redirects", "https://www.tiktok.com/?_r=1", tt, "front page"},
		{"TikTok video id with a leading zero", "https://www.tiktok.com/@user/video/0" + tiktokID, link.UnsupportedLink, "0" + tiktokID},
		{"TikTok handle on the host for advertisers", "https://ads.tiktok.com/@user", tt, "ads.tiktok.com"},
		{"TikTok live", "https://www.tiktok.com/@user/live", tt, "/@user/live"},
		{"TikTok live stream link with an id", "https://www.tiktok.com/@user/live/" + tiktokID, tt, "/live/"},
		{"TikTok live stream link at the end of a sentence", "https://www.tiktok.com/@user/live.", tt, "/live"},
		{"TikTok collection", "https://www.tiktok.com/@user/collection/name-" + tiktokID, tt, "/collection/"},
		{"TikTok playlist", "https://www.tiktok.com/@user/playlist/name-" + tiktokID, tt, "/playlist/"},
		{"TikTok sound", "https://www.tiktok.com/music/original-sound-" + tiktokID, tt, "/music/"},
		{"TikTok hashtag", "https://www.tiktok.com/tag/funny", tt, "/tag/funny"},
		{"TikTok effect", "https://www.tiktok.com/sticker/name-123456", tt, "/sticker/"},
		{"TikTok discover page", "https://www.tiktok.com/discover/dance", tt, "/discover/"},
		{"TikTok search", "https://www.tiktok.com/search?q=user", tt, "/search"},
		{"TikTok feed link without item_id", "https://www.tiktok.com/foryou?lang=en", tt, "/foryou"},
		{"TikTok video link without an id", "https://www.tiktok.com/@user/video/", tt, "names no video id; a TikTok id has 15 to 20 digits"},
		{"TikTok video with a short id", "https://www.tiktok.com/@user/video/71065943122924", tt, "a TikTok id has 15 to 20 digits"},
		{"TikTok video with a long id", "https://www.tiktok.com/@user/video/710659431229245367512", tt, "a TikTok id has 15 to 20 digits"},
		{"TikTok video with letters in the id", "https://www.tiktok.com/@user/video/7106594312292453abc", tt, "a TikTok id has 15 to 20 digits"},
		{"TikTok video with an id of zeros", "https://www.tiktok.com/@user/video/0000000000000000000", tt, "a TikTok id has 15 to 20 digits and does not begin with 0"},
		{"TikTok handle encoded twice", "https://www.tiktok.com/%2540user", tt, "%40user"},
		{"TikTok link with an at sign and no handle", "https://www.tiktok.com/@", tt, `"" is not an account name`},
		{"TikTok handle without at sign", "https://www.tiktok.com/user", tt, `"/user"`},
		{"TikTok handle of one character", "https://www.tiktok.com/@a", tt, "2 to 24"},
		{"TikTok handle of 25 characters", "https://www.tiktok.com/@" + strings.Repeat("a", 25), tt, "2 to 24"},
		{"TikTok handle with a dash", "https://www.tiktok.com/@us-er", tt, "2 to 24"},
		{"TikTok handle followed by ~ and a number", "https://www.tiktok.com/@user~123", tt, "user~123"},
		{"TikTok handle in Cyrillic", "https://www.tiktok.com/@юзер", tt, "юзер"},
		{"TikTok short link without code", "https://vm.tiktok.com/", tt, "front page of vm.tiktok.com"},
		{"TikTok short link with a short code", "https://vm.tiktok.com/ZM1/", tt, "/ZM1"},
		{"TikTok short link with a path part after the code", "https://vm.tiktok.com/redirect/extra?url=http://localhost", tt, "/redirect/extra"},
		{"tiktok.com/t/ link without a code", "https://www.tiktok.com/t/", tt, "/t"},
		{"TikTok oEmbed without a link", "https://www.tiktok.com/oembed", tt, "/oembed"},
		{"TikTok account id with letters", "https://www.tiktok.com/share/user/12ab", tt, "account id"},
		{"/share/music/ link of TikTok", "https://www.tiktok.com/share/music/" + tiktokID, tt, "/share/music/"},
		{"TikTok application link", "snssdk1233://aweme/detail/" + tiktokID, tt, "application"},
	}
}
