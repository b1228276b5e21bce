package link_test

import (
	"strings"

	"github.com/reeltally/reeltally/store/link"
)

func tiktokAcceptedLinks() []acceptedLink {
	const id = tiktokID
	photo := tiktokVideo("user")
	photo.Canonical = "https://www.tiktok.com/@user/photo/" + id
	photoWithoutHandle := tiktokVideo("")
	photoWithoutHandle.Canonical = "https://www.tiktok.com/@/photo/" + id
	user := account(link.TikTok, "user", "https://www.tiktok.com/@user")
	numeric := numbered(link.TikTok, "6567659045795758085", "https://www.tiktok.com/share/user/6567659045795758085")
	shortest, longest := tiktokVideo("user"), tiktokVideo("user")
	shortest.ID, shortest.Canonical = "710659431229245", "https://www.tiktok.com/@user/video/710659431229245"
	longest.ID, longest.Canonical = "71065943122924536750", "https://www.tiktok.com/@user/video/71065943122924536750"

	return []acceptedLink{
		{"video", "https://www.tiktok.com/@user/video/" + id, tiktokVideo("user")},
		{"video without www", "https://tiktok.com/@user/video/" + id, tiktokVideo("user")},
		{"video on the mobile host", "https://m.tiktok.com/@user/video/" + id, tiktokVideo("user")},
		{"video on the mobile host with www", "https://www.m.tiktok.com/@user/video/" + id, tiktokVideo("user")},
		{"video on a regional host", "https://us.tiktok.com/@user/video/" + id, tiktokVideo("user")},
		{"video copied from the browser", "https://www.tiktok.com/@user/video/" + id + "?is_from_webapp=1&sender_device=pc&web_id=7211", tiktokVideo("user")},
		{"video copied from the application", "https://www.tiktok.com/@user/video/" + id + "?_r=1&u_code=dgf&preview_pb=0&language=en&_d=d9&share_item_id=7000000000000000001&timestamp=1650000000", tiktokVideo("user")},
		{"video with a language", "https://www.tiktok.com/@user/video/" + id + "?lang=de-DE", tiktokVideo("user")},
		{"video under a language prefix", "https://www.tiktok.com/en/@user/video/" + id, tiktokVideo("user")},
		{"video with more path", "https://www.tiktok.com/@user/video/" + id + "/analytics", tiktokVideo("user")},
		{"video on the mobile host with a file extension", "https://m.tiktok.com/@user/video/" + id + ".html", tiktokVideo("user")},
		{"video of 15 digits", "https://www.tiktok.com/@user/video/710659431229245", shortest},
		{"video of 20 digits", "https://www.tiktok.com/@user/video/71065943122924536750", longest},
		{"video whose handle has upper case", "https://www.tiktok.com/@User.Name_1/video/" + id, tiktokVideo("user.name_1")},
		{"video whose handle is all digits", "https://www.tiktok.com/@123456/video/" + id, tiktokVideo("123456")},
		{"video with the secUid for the handle", "https://www.tiktok.com/@" + secUID + "/video/" + id, tiktokVideo("")},
		{"video with the numeric id for the handle", "https://www.tiktok.com/@6567659045795758085/video/" + id, tiktokVideo("")},
		{"video with an empty handle", "https://www.tiktok.com/@/video/" + id, tiktokVideo("")},
		{"video with an invalid handle", "https://www.tiktok.com/@us~er/video/" + id, tiktokVideo("")},
		{"video with the id in the query", "https://www.tiktok.com/@user/video/is_copy_url=1&is_from_webapp=v1&item_id=" + id, tiktokVideo("user")},
		{"video with the word in upper case", "https://www.tiktok.com/@user/Video/" + id, tiktokVideo("user")},
		{"slideshow", "https://www.tiktok.com/@user/photo/" + id, photo},
		{"slideshow with a query", "https://www.tiktok.com/@user/photo/" + id + "?_t=8n&_r=1", photo},
		{"slideshow with an empty handle", "https://www.tiktok.com/@/photo/" + id, photoWithoutHandle},
		{"shared video", "https://www.tiktok.com/share/video/" + id, tiktokVideo("")},
		{"shared slideshow", "https://www.tiktok.com/share/photo/" + id, photoWithoutHandle},
		{"shared item", "https://m.tiktok.com/share/item/" + id, tiktokVideo("")},
		{"shared video of a data export", "https://www.tiktokv.com/share/video/" + id + "/", tiktokVideo("")},
		{"shared video of the export without www", "http://tiktokv.com/share/video/" + id, tiktokVideo("")},
		{"shared video on the American host", "https://www.tiktokv.us/share/video/" + id + "/", tiktokVideo("")},
		{"shared video on the European host", "https://www.tiktokv.eu/share/video/" + id + "/", tiktokVideo("")},
		{"shared video of the international path", "https://t.tiktok.com/i18n/share/video/" + id + "/?region=us", tiktokVideo("")},
		{"v path", "https://www.tiktok.com/v/" + id, tiktokVideo("")},
		{"v path on the mobile host", "https://m.tiktok.com/v/" + id + ".html", tiktokVideo("")},
		{"v path with its query", "https://m.tiktok.com/v/" + id + ".html?u_code=d&share_app_name=musically", tiktokVideo("")},
		{"embed", "https://www.tiktok.com/embed/" + id, tiktokVideo("")},
		{"embed v2", "https://www.tiktok.com/embed/v2/" + id, tiktokVideo("")},
		{"embed v2 with a language", "https://www.tiktok.com/embed/v2/" + id + "?lang=en-US&referrer=https%3A%2F%2Fexample.com", tiktokVideo("")},
		{"embed v3", "https://www.tiktok.com/embed/v3/" + id, tiktokVideo("")},
		{"player", "https://www.tiktok.com/player/v1/" + id + "?autoplay=1", tiktokVideo("")},
		{"video path without an account", "https://www.tiktok.com/video/" + id, tiktokVideo("")},
		{"feed at an item", "https://www.tiktok.com/foryou?is_copy_url=1&is_from_webapp=v1&item_id=" + id, tiktokVideo("")},
		{"feed at a shared item", "https://www.tiktok.com/trending?shareId=" + id, tiktokVideo("")},
		{"front page at an item", "https://www.tiktok.com/?item_id=" + id + "#/foryou", tiktokVideo("")},
		{"feed with the video in the fragment", "https://www.tiktok.com/foryou?lang=en#/@user/video/" + id, tiktokVideo("user")},
		{"oEmbed", "https://www.tiktok.com/oembed?url=https%3A%2F%2Fwww.tiktok.com%2F%40user%2Fvideo%2F" + id, tiktokVideo("user")},
		{"oEmbed with the link not encoded", "https://www.tiktok.com/oembed?url=https://www.tiktok.com/@user/video/" + id, tiktokVideo("user")},
		{"login page", "https://www.tiktok.com/login?redirect_url=https%3A%2F%2Fwww.tiktok.com%2F%40user%2Fvideo%2F" + id + "&lang=en", tiktokVideo("user")},
		{"link page to another platform", "https://www.tiktok.com/link/v2?aid=1988&scene=bio_url&target=https%3A%2F%2Fyoutu.be%2F" + youtubeID, youtubeVideo()},

		{"short link of vm", "https://vm.tiktok.com/ZMeAbc123/", short(link.TikTok, "ZMeAbc123", "https://vm.tiktok.com/ZMeAbc123/")},
		{"short link of vm without slash", "https://vm.tiktok.com/ZSe4FqkKd", short(link.TikTok, "ZSe4FqkKd", "https://vm.tiktok.com/ZSe4FqkKd/")},
		{"short link of vm without scheme", "vm.tiktok.com/ZSe4FqkKe", short(link.TikTok, "ZSe4FqkKe", "https://vm.tiktok.com/ZSe4FqkKe/")},
		{"short link of vm with http and query", "http://vm.tiktok.com/ZSe4FqkKf/?k=1", short(link.TikTok, "ZSe4FqkKf", "https://vm.tiktok.com/ZSe4FqkKf/")},
		{"short link of vt", "https://vt.tiktok.com/ZS8abcDEF/", short(link.TikTok, "ZS8abcDEF", "https://vt.tiktok.com/ZS8abcDEF/")},
		{"short link of vt in upper case host", "https://VT.TIKTOK.COM/ZS8abcDEG/", short(link.TikTok, "ZS8abcDEG", "https://vt.tiktok.com/ZS8abcDEG/")},
		{"short link of vt below t", "https://vt.tiktok.com/t/ZS8abcDEH/", short(link.TikTok, "ZS8abcDEH", "https://vt.tiktok.com/ZS8abcDEH/")},
		{"short link below t", "https://www.tiktok.com/t/ZTRC5xgJp", short(link.TikTok, "ZTRC5xgJp", "https://www.tiktok.com/t/ZTRC5xgJp/")},
		{"short link below t without www", "https://tiktok.com/t/ZTRC5xgJq/", short(link.TikTok, "ZTRC5xgJq", "https://www.tiktok.com/t/ZTRC5xgJq/")},
		{"short link of TikTok Lite", "https://lite.tiktok.com/t/ZSuGXKdsU/", short(link.TikTok, "ZSuGXKdsU", "https://lite.tiktok.com/t/ZSuGXKdsU/")},
		{"short link with a long code", "https://lite.tiktok.com/t/ZS9AJY6f4n6Sw-GQnDP/", short(link.TikTok, "ZS9AJY6f4n6Sw-GQnDP", "https://lite.tiktok.com/t/ZS9AJY6f4n6Sw-GQnDP/")},
		{"short link at the end of a sentence", "https://vm.tiktok.com/ZMeAbc124.", short(link.TikTok, "ZMeAbc124", "https://vm.tiktok.com/ZMeAbc124/")},
		{"short link after a slash at the end of a sentence", "https://vm.tiktok.com/ZMeAbc125/.", short(link.TikTok, "ZMeAbc125", "https://vm.tiktok.com/ZMeAbc125/")},

		{"account", "https://www.tiktok.com/@user", user},
		{"account without scheme and www", "tiktok.com/@user", user},
		{"account on the mobile host", "https://m.tiktok.com/@user/", user},
		{"account with a language", "https://www.tiktok.com/@user?lang=en", user},
		{"account shared from the application", "https://www.tiktok.com/@user?_t=8abc&_r=1", user},
		{"account in upper case", "https://www.tiktok.com/@USER", user},
		{"account with an encoded at sign", "https://www.tiktok.com/%40user", user},
		{"account under a language prefix", "https://www.tiktok.com/de-DE/@user", user},
		{"account of an embed", "https://www.tiktok.com/embed/@user", user},
		{"account tab", "https://www.tiktok.com/@user/liked", user},
		{"account at the end of a sentence", "https://www.tiktok.com/@user.", user},
		{"account with dots and underscores", "https://www.tiktok.com/@_us.er_", account(link.TikTok, "_us.er_", "https://www.tiktok.com/@_us.er_")},
		{"account of two characters", "https://www.tiktok.com/@ab", account(link.TikTok, "ab", "https://www.tiktok.com/@ab")},
		{"account of 24 characters", "https://www.tiktok.com/@" + strings.Repeat("a", 24), account(link.TikTok, strings.Repeat("a", 24), "https://www.tiktok.com/@"+strings.Repeat("a", 24))},
		{"account with digits only", "https://www.tiktok.com/@1234567", account(link.TikTok, "1234567", "https://www.tiktok.com/@1234567")},
		{"account by secUid", "https://www.tiktok.com/@" + secUID, numbered(link.TikTok, secUID, "https://www.tiktok.com/@"+secUID)},
		{"account by numeric id in the handle's place", "https://www.tiktok.com/@6820838815978423302", link.Link{
			Platform: link.TikTok, Kind: link.Account, ID: "6820838815978423302", Handle: "6820838815978423302",
			Canonical: "https://www.tiktok.com/@6820838815978423302",
		}},
		{"account by numeric id", "https://www.tiktok.com/share/user/6567659045795758085", numeric},
		{"account by numeric id on the mobile host", "https://m.tiktok.com/h5/share/usr/6567659045795758085.html", numeric},
		{"account by numeric id with its query", "https://m.tiktok.com/h5/share/usr/6567659045795758085.html?_d=sec&sec_uid=" + secUID, numeric},
		{"account by numeric id of the international path", "https://m.tiktok.com/i18n/share/user/6567659045795758085/", numeric},
	}
}

func tiktokRefusedLinks() []refusedLink {
	const tt = link.UnsupportedLink
	return []refusedLink{
		{"TikTok front page", "https://www.tiktok.com/", tt, "front page"},
		{"TikTok front page after an expired short link", "https://www.tiktok.com/?_r=1", tt, "front page"},
		{"TikTok live", "https://www.tiktok.com/@user/live", tt, "/@user/live"},
		{"TikTok live with its id", "https://www.tiktok.com/@user/live/" + tiktokID, tt, "/live/"},
		{"TikTok live at the end of a sentence", "https://www.tiktok.com/@user/live.", tt, "/live"},
		{"TikTok collection", "https://www.tiktok.com/@user/collection/name-" + tiktokID, tt, "/collection/"},
		{"TikTok playlist", "https://www.tiktok.com/@user/playlist/name-" + tiktokID, tt, "/playlist/"},
		{"TikTok sound", "https://www.tiktok.com/music/original-sound-" + tiktokID, tt, "/music/"},
		{"TikTok hashtag", "https://www.tiktok.com/tag/funny", tt, "/tag/funny"},
		{"TikTok effect", "https://www.tiktok.com/sticker/name-123456", tt, "/sticker/"},
		{"TikTok discover page", "https://www.tiktok.com/discover/dance", tt, "/discover/"},
		{"TikTok search", "https://www.tiktok.com/search?q=user", tt, "/search"},
		{"TikTok feed without an item", "https://www.tiktok.com/foryou?lang=en", tt, "/foryou"},
		{"TikTok video without id", "https://www.tiktok.com/@user/video/", tt, "names no video id"},
		{"TikTok video with a short id", "https://www.tiktok.com/@user/video/71065943122924", tt, "15 to 20 digits"},
		{"TikTok video with a long id", "https://www.tiktok.com/@user/video/710659431229245367512", tt, "15 to 20 digits"},
		{"TikTok video with letters in the id", "https://www.tiktok.com/@user/video/7106594312292453abc", tt, "15 to 20 digits"},
		{"TikTok handle encoded twice", "https://www.tiktok.com/%2540user", tt, "%40user"},
		{"TikTok handle missing", "https://www.tiktok.com/@", tt, `"" is not an account name`},
		{"TikTok handle without at sign", "https://www.tiktok.com/user", tt, `"/user"`},
		{"TikTok handle of one character", "https://www.tiktok.com/@a", tt, "2 to 24"},
		{"TikTok handle of 25 characters", "https://www.tiktok.com/@" + strings.Repeat("a", 25), tt, "2 to 24"},
		{"TikTok handle with a dash", "https://www.tiktok.com/@us-er", tt, "2 to 24"},
		{"TikTok handle with a creator id", "https://www.tiktok.com/@user~123", tt, "user~123"},
		{"TikTok handle in another script", "https://www.tiktok.com/@юзер", tt, "юзер"},
		{"TikTok short link without code", "https://vm.tiktok.com/", tt, "front page of vm.tiktok.com"},
		{"TikTok short link with a short code", "https://vm.tiktok.com/ZM1/", tt, "/ZM1"},
		{"TikTok short link with more path", "https://vm.tiktok.com/redirect/extra?url=http://localhost", tt, "/redirect/extra"},
		{"TikTok short link below t without code", "https://www.tiktok.com/t/", tt, "/t"},
		{"TikTok oEmbed without a link", "https://www.tiktok.com/oembed", tt, "/oembed"},
		{"TikTok account id with letters", "https://www.tiktok.com/share/user/12ab", tt, "account id"},
		{"TikTok share of a sound", "https://www.tiktok.com/share/music/" + tiktokID, tt, "/share/music/"},
		{"TikTok application link", "snssdk1233://aweme/detail/" + tiktokID, tt, "application"},
	}
}
