// Package tiktok fetches videos and accounts from TikTok's own APIs.
//
// It has two sources. [Display] uses the Display API, which returns the videos of one account that has logged in to the operator's app.
// [Research] uses the Research API, which returns any public video, but only to approved researchers and not for commercial use.
//
// Both sources share the format of requests and errors (api.go) and the decoding of videos (videos.go). tokens.go, usertokens.go and
// seal.go get, renew and encrypt the access tokens. Start reading at [Display.Fetch] or [Research.Fetch].
package tiktok
