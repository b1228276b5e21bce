// Package tiktok fetches videos and accounts from TikTok's own APIs.
//
// It has two sources. [Display] uses the Display API: it returns the videos of one account, which has logged in to the operator's app.
// [Research] uses the Research API: it returns any public video, but only for approved researchers and no commercial use. Both share the
// format of requests and errors (api.go), the decoding of videos (videos.go) and the exchange of tokens (tokens.go, usertokens.go,
// seal.go). Start reading at [Display.Fetch] or [Research.Fetch].
package tiktok
