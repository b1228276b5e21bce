// Package sandbox stands in for the platforms: one http.Handler that speaks their real wire formats over a world of made-up
// accounts and videos. The collector runs against it as it runs against the platforms; base addresses and keys alone differ.
// Every response bears the header "ReelTally-Sandbox: true".
//
// # Paths
//
//	/youtube/youtube/v3/METHOD   YouTube Data API v3: videos, videos:batchGetStats, channels, playlistItems. Key: YouTubeAPIKey.
//	/tiktok/v2/METHOD/           TikTok's own APIs. Display, for TikTokAccount alone: user/info, video/query, video/list. Research, as it was two
//	                             days ago: research/video/query (by ids and names, 60 rows a page at the most), research/user/info. Tokens: oauth/token, see below.
//	/instagram/VERSION/PATH      Instagram Graph API: the own account with its media and insights, business discovery. Token: InstagramToken.
//	/facebook/VERSION/PATH       Facebook's Graph API: pages, videos, video_reels, video_insights. Tokens: FacebookToken;
//	                             FacebookUserToken, which me/accounts gives those of its pages.
//	/vendor/PATH                 what a vendor has after its base address. Key: VendorKey, sent as that vendor wants it.
//	  tt/… instagram/… facebook/…  EnsembleData, ?token= (it sells no Facebook; those paths are the sandbox's own)
//	  v1/… v2/… v3/…               ScrapeCreators, header x-api-key
//	  acts/ACTOR/run-sync-get-dataset-items  Apify's clockworks~tiktok-scraper and its kin and apify~instagram-scraper, Bearer or ?token=
//	/shortlinks/HOST/PATH        what https://HOST/PATH answers, for GET and HEAD
//	/_control/…                  see below
//
// Settings returns the environment variables that point every source to the sandbox. TikTok's Research API is the exception: it takes
// TikTokResearchClientKey and its secret. The sandbox refuses the same requests as the real source: wrong keys, unknown or missing
// parameters, too many ids. YouTube's quota is enforced: 10,000 units a Pacific day in the common bucket and as many for batchGetStats. So is
// TikTok's for researchers: 1,000 requests a UTC day. TikTok's access tokens last two hours. A refresh token works only once, except
// TikTokRefreshToken, which starts a new login at each use. Tokens remain valid after the process ends.
//
// A Graph API call that has an appsecret_proof has the right one (of MetaAppSecret), or is refused; control demands one of every call.
// The Graph API takes GET, versions 22.0 to 26.0, access_token and field expansion (media.after(…).limit(50){id,…}); unknown fields, metrics and modifiers
// are refused. Its ids of Instagram's accounts and media are others than those of Instagram itself. Insights are given of the own account's posts and
// of the own page's videos from their second hour on. On Instagram every account but the private is a professional one, on Facebook a page; three in
// four of a page's videos are reels. Its two lists are filtered after the page is cut, so that a page may be short or empty though there is a next one.
// A video of fewer than five views has no insights yet.
//
// Of EnsembleData there are tt/post/info (a list of one), tt/post/multi-info (up to 100 ids with semicolons; what cannot be seen
// is left out), tt/user/info, tt/user/posts (chunks of 10: {"data":[…],"nextCursor"}), instagram/post/details,
// instagram/user/info (ids and names, no counts), instagram/user/detailed-info (the counts), instagram/user/reels (by numeric id:
// {"data":{"reels":[{"media":…}],"nextCursor"}}), facebook/post/info?url=, facebook/user/info?username=,
// facebook/user/reels?username=&depth=. A private video is 472, an age-restricted one 471, a deleted one 404, an unknown user 473.
//
// # The world
//
// Every id of the right shape is a video and every handle of the right shape is an account, always the same for one
// Options.Seed. World gives the truth, so that a test can compare it with what was collected.
//
//   - Upload times stand in TikTok's ids and Instagram's shortcodes, as in reality. Those of YouTube and Facebook, and those of ids that
//     carry no sensible time, are drawn from the 400 days before 1 October 2026. A clock that is set to before that day lives in an earlier block
//     of 400 days, in which these hidden times lie earlier; within a block, nothing but counts ever changes. (An id that claims a time after the clock has a
//     hidden one, too, until that time comes.)
//   - Counts are a function of the age: a power law with a daily and a weekly wave, and for outliers a late burst. They never fall (but for the category
//     falling, once), views stay above the sum of the rest, and none is ever zero. Any instant can be asked for.
//   - Accounts list 5 to 50 videos by 1 October 2026 and upload on at a steady rate, one in 1.5 to 20 days.
//     A listed video names its account, in every answer. Any other video belongs to an account by its id; that account's list does not show it.
//   - A link that names both a video and an account is believed: the author is the named account from then on, also for
//     calls that give the id alone. Handles and account ids that do not come from the world itself are remembered in the same way. This memory
//     ends with the process, and World.Account and World.Claim bring it back; counts never depend on it. World.Handle names accounts that need none.
//
// # Special cases
//
// A few in a thousand are special, by hash (per thousand videos: 20 viral, 6 comments_off, 3 age_restricted, 3 private, 4 deleted, 3 falling,
// all but TikTok 6 hidden_likes, TikTok 10 shop_ad and 4 photo, YouTube 2 live; per thousand accounts: 2 gone, 3 empty, all but
// YouTube 3 private, YouTube 5 hidden_followers and 5 no_handle). So a real id is nearly always an ordinary public video. World.Find and
// World.FindAccount, and the control calls below, give one of each. What turns private, is deleted or falls does so at the
// truth's TurnsAt, which of the found ones lies in 2027: set the clock to either side of it.
//
// A short link leads to a video of an ordinary account; 15 in a thousand lead to an account, 5 to the home page, 5 are 404, 10 take two hops, and of
// Instagram's and Facebook's 10 end at a login page with next=. A code that begins (on TikTok behind its first two letters) with one of these
// forces its case: Vide, Acct, Dead (home page), Wall (login page), Gone (404), Hops (two redirects), Loop (endless), and on TikTok Live and Foto.
// "vm.tiktok.com/ZMDead123/" is dead, "www.instagram.com/share/reel/Acct123456" an account.
//
// # Control
//
//	PUT    /_control/faults  {"source","fault","count","retry_after","ids","status","body"}: one fault a source, the newest wins
//	GET    /_control/faults  {"faults":[…]}, with "used", the calls that each has met
//	DELETE /_control/faults  all of them, or ?source=
//	GET    /_control/calls   {"<source>":{"calls","ids","max_batch","by_method","batches","batches_dropped"}}
//	DELETE /_control/calls   counts from zero
//	PUT    /_control/clock   {"now"}: the clock stands still there
//	GET    /_control/clock   {"now","frozen"}
//	DELETE /_control/clock   back to real time
//	GET    /_control/video   ?platform=&id= or ?platform=&category=: the truth now, or &at=
//	PUT    /_control/account {"platform","handle","to","stranger"}: rename an account. Its old handle is then unused or, with
//	                         stranger, belongs to an unrelated account
//	PUT    /_control/meta    {"require_app_secret","refuse_insights","expire_page_tokens"}: whether the Graph API requires appsecret_proof;
//	                         whether Facebook's insights fail for a missing permission; end the page tokens that me/accounts has
//	                         given, so that it gives new ones
//	GET    /_control/account ?platform=&handle= or ?platform=&category=: the truth now, with the ids of its uploads
//
// Sources are youtube, instagram, facebook, tiktok_display, tiktok_research, vendor, shortlinks, and tiktok. tiktok, instagram and facebook
// also stand for a vendor's calls for these platforms. "" or "*" stands for all sources. The most specific fault applies: that of the
// platform, else that of the source, else that of all. A vendor's calls are counted under the vendor and under the platform.
//
// A fault lasts for count calls, or until it is deleted. It does not apply to calls without a valid key. The faults are:
//
//   - rate_limited: 429; Retry-After only with retry_after.
//   - quota_spent: the source's answer for a spent quota. The Graph API reports a business limit that ends in five minutes.
//   - server_error: the 5xx that the source itself uses; Retry-After only with retry_after.
//   - slow: the right answer after retry_after seconds; 30 if it is not given.
//   - refused: status and body, for calls that name one of ids. ids are ids, handles or links, whichever the source's calls contain.
//   - zeros: every count of a right answer is 0.
//   - truncated: 200 and half of the body. In turn, the header promises half of it or all of it.
//   - hostile: 200 and, in turn: wrong types, numbers and strings confused, numeric ids beyond 2^53, fields swapped, deep nesting, 10 MB, NUL
//     and invalid UTF-8, HTML, no ids, impossible numbers, nulls, nothing, another top level. For short links: redirects to forbidden addresses.
package sandbox
