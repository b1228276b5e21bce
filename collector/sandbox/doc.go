// Package sandbox simulates the platforms and vendors. One http.Handler serves their real formats with made-up accounts and videos. The
// collector needs only other base URLs and keys to use the sandbox. Every response has the header "ReelTally-Sandbox: true".
//
// The main types are [Sandbox], which serves the requests, and [World], which generates the accounts and videos. Start reading at
// [Sandbox.Handler]. Each platform and each vendor has separate files.
//
// # Paths
//
//	/youtube/youtube/v3/METHOD   YouTube Data API v3: videos, videos:batchGetStats, channels, playlistItems. Key: YouTubeAPIKey.
//	/tiktok/v2/METHOD/           TikTok's own APIs. Display, for TikTokAccount only: user/info, video/query, video/list. Research, with the data of
//	                             two days ago: research/video/query (by ids and handles, up to 60 rows a page), research/user/info. Tokens: oauth/token, see below.
//	/instagram/VERSION/PATH      Instagram Graph API: the account of the token with its media and insights, business discovery. Token:
//	                             InstagramToken.
//	/facebook/VERSION/PATH       Facebook's Graph API: pages, videos, video_reels, video_insights. Tokens: FacebookToken;
//	                             FacebookUserToken, which gets the tokens of its pages from me/accounts.
//	/vendor/PATH                 the paths of the vendors. Key: VendorKey, sent as the vendor's real API requires it.
//	  tt/… instagram/… facebook/…  EnsembleData, ?token= (it does not sell Facebook; the sandbox adds these paths)
//	  v1/… v2/… v3/…               ScrapeCreators, header x-api-key
//	  acts/ACTOR/run-sync-get-dataset-items  Apify's clockworks~tiktok-scraper, its variants and apify~instagram-scraper, Bearer or ?token=
//	/shortlinks/HOST/PATH        the answer of https://HOST/PATH, for GET and HEAD
//	/thumbnails/HOST/PATH        a picture that the sandbox generates for https://HOST/PATH
//	/_control/…                  see below
//
// [Sandbox.Settings] returns environment variables that make every source use the sandbox, except the source for TikTok's Research API.
// That source needs TikTokResearchClientKey and TikTokResearchClientSecret. The sandbox refuses the same requests as the real servers:
// wrong keys, unknown or missing parameters, too many ids.
//
// The sandbox enforces YouTube's quota: 10,000 units per Pacific day for batchGetStats, and 10,000 units for all other methods. It also
// enforces the quota of TikTok's Research API: 1,000 requests per UTC day. TikTok's access tokens are valid for two hours. A refresh token
// works only once, except TikTokRefreshToken, which starts a new login at each use. Tokens remain valid after the process ends.
//
// The Graph API accepts GET, versions 22.0 to 26.0, access_token and field expansion (media.after(…).limit(50){id,…}). It refuses unknown
// fields, metrics and modifiers, and a wrong appsecret_proof. A control call can make the Graph API require an appsecret_proof. The Graph
// API's ids of Instagram accounts and media differ from the ids of Instagram itself. The owner of a token can request insights of its posts
// or videos if they are at least one hour old. Facebook videos must also have at least five views.
//
// Every Instagram account that is not private is professional, and every Facebook account that is not private is a page. Three in four
// videos of a page are reels. The entries of a page's two lists are filtered. A page of a list can therefore be short or empty although
// more pages follow.
//
// EnsembleData has the paths tt/post/info (a list of one), tt/post/multi-info (up to 100 ids with semicolons; unavailable videos
// are left out), tt/user/info, tt/user/posts (chunks of 10: {"data":[…],"nextCursor"}), instagram/post/details,
// instagram/user/info (ids and names, no counts), instagram/user/detailed-info (the counts), instagram/user/reels (by numeric id:
// {"data":{"reels":[{"media":…}],"nextCursor"}}; posts with hidden likes have the format of Instagram's app), facebook/post/info?url=, facebook/user/info?username=,
// facebook/user/reels?username=&depth=. The status is 472 for a private
// video, 471 for an age-restricted one, 404 for a deleted one, and 473 for an unknown user.
//
// Apify rounds TikTok counts from 10,000 on, as TikTok's site shows them. In ScrapeCreators' TikTok videos, shop_product_url names the product.
//
// # Generated data
//
// Every valid id is a video and every valid handle is an account. Their data depend only on Options.Seed and the time. [World] generates
// these data. A test can compare the data that World returns with the data that the collector stored.
//
//   - TikTok's ids and Instagram's shortcodes contain the upload time, as in reality. The upload times of all other ids are random times in
//     the 400 days before 1 October 2026. If the clock is set to an earlier time, these times are in the 400 days before an earlier date:
//     1 October 2026 minus a multiple of 400 days, and not after the clock's time. While the clock stays between two such dates, only counts
//     change. An id can contain an upload time after the clock's time. The video then has a random upload time until the clock reaches the
//     time in the id.
//   - Counts are a function of the video's age: a power law with a daily and a weekly wave, and a late burst for viral videos. Counts never
//     decrease, with one exception: the counts of a video of the category "falling" decrease once. Views are greater than the sum of the
//     other counts. No count is zero. Counts are defined for any time.
//   - Accounts have 5 to 50 listed videos on 1 October 2026, and then upload one video every 1.5 to 20 days. For any other id, the
//     account is derived from the id, but this account's list does not contain the video.
//   - If a link contains both a video and an account, the video belongs to this account from then on, also in calls with the video id only.
//     If a request contains a handle or an account id that the sandbox did not generate, the sandbox stores it as the handle or id of an
//     account. Stored authors, handles and ids are lost when the process ends. In a new process, World.Account stores the handles and ids
//     again, and World.AssignAuthor stores the authors again. Counts do not depend on them. Handles from World.Handle are generated, so they are
//     not stored.
//
// # Special cases
//
// A few videos and accounts have a special category, which a hash of the id selects. Of a thousand videos, 20 are viral, 6 comments_off, 3
// age_restricted, 3 private, 4 deleted and 3 falling. On TikTok, 10 are shop_ad and 4 are photo. On YouTube, 2 are live. On all platforms
// except TikTok, 6 are hidden_likes. Of a thousand accounts, 2 are gone and 3 are empty. On YouTube, 5 are hidden_followers and 5 are
// no_handle. On all platforms except YouTube, 3 are private. A real id is therefore nearly always a normal public video. World.Find
// returns a video of a given category, and World.FindAccount an account. The control calls below do the same over HTTP. VideoTruth.ChangesAt is the time at which a
// video of the category "private", "deleted" or "falling" becomes private, is deleted or loses counts. For the videos of World.Find, this time is
// in 2027, so that a test can set the clock before or after ChangesAt.
//
// A short link redirects to a video of a normal account. Of a thousand short links, 15 redirect to an account, 5 redirect to the home page,
// 5 return 404, and 10 need two redirects. Of a thousand short links of Instagram or Facebook, 10 redirect to a login page with next=. If a
// code has one of the following prefixes (on TikTok after its first two letters), its target is fixed: Vide (a video), Acct (an account),
// Dead (home page), Wall (login page), Gone (404), Hops (two redirects), Loop (redirects without end), and on TikTok Live (a live room) and
// Foto (a slideshow). For example, "vm.tiktok.com/ZMDead123/" redirects to the home page, and "www.instagram.com/share/reel/Acct123456"
// redirects to an account.
//
// # Control
//
//	PUT    /_control/faults  {"source","fault","count","retry_after","ids","status","body"}: sets the fault of a source and replaces an earlier one
//	GET    /_control/faults  {"faults":[…]}, where "used" is the number of affected calls
//	DELETE /_control/faults  deletes all faults, or the fault of ?source=
//	GET    /_control/calls   {"<source>":{"calls","ids","max_batch","by_method","batches","batches_dropped"}}
//	DELETE /_control/calls   resets the counts to zero
//	PUT    /_control/clock   {"now"}: stops the clock at the time "now"
//	GET    /_control/clock   {"now","frozen"}
//	DELETE /_control/clock   returns to real time
//	GET    /_control/video   ?platform=&id= or ?platform=&category=: the current data of World, or the data at the time &at=
//	PUT    /_control/account {"platform","handle","new_handle","reuse"}: renames an account. If reuse is true, its old
//	                         handle then belongs to another account; otherwise no account has the old handle
//	PUT    /_control/meta    {"require_app_secret","refuse_insights","expire_page_tokens"}: whether the Graph API requires appsecret_proof;
//	                         whether Facebook's insights fail because of a missing permission; whether to invalidate the page tokens
//	                         of me/accounts, which then returns new ones
//	GET    /_control/account ?platform=&handle= or ?platform=&category=: the current data of World, with the ids of the account's uploads
//
// The sources are youtube, instagram, facebook, tiktok_display, tiktok_research, vendor, shortlinks, and tiktok. tiktok, instagram and
// facebook also include a vendor's calls for these platforms. "" or "*" means all sources. If several faults match a call, the most
// specific fault applies: first the fault of the platform, then the fault of the source, then the fault of all sources. A vendor's call is
// counted for the vendor and for the platform.
//
// The number of calls to which a fault applies is "count". Without "count", the fault applies until it is deleted. It does not apply to
// calls without a valid key. The faults are:
//
//   - rate_limited: status 429, with Retry-After only if retry_after is set.
//   - quota_spent: the source's answer for a spent quota. The Graph API reports a business limit that ends in five minutes.
//   - server_error: the source's answer for a server error (5xx), with Retry-After only if retry_after is set.
//   - slow: the correct answer after retry_after seconds, or after 30 seconds if retry_after is not set.
//   - refused: the given status and body, for calls that contain one of the values of "ids". These are ids, handles or links, depending on
//     what the source's calls contain.
//   - zeros: the correct answer with every count set to 0.
//   - truncated: status 200 and half of the correct body. Content-Length is alternately the length of the half and the length of the whole
//     body.
//   - hostile: status 200 and, in turn: wrong types, numbers as strings and strings as numbers, numeric ids beyond 2^53, swapped fields,
//     deep nesting, a body of 10 MB, NUL and invalid UTF-8, HTML, no ids, impossible numbers, nulls, an empty body, a string instead of an
//     object. For short links: redirects to forbidden addresses.
package sandbox
