// Package youtube fetches videos and channels from the YouTube Data API v3 with an API key.
//
// The API returns any public or unlisted video with its views, likes and comments, and any channel with its uploads. It does not return
// shares, bookmarks, songs and advertising flags.
//
// The main type is [Source]. Start reading at [Source.Fetch]. videos.go fetches videos, channels.go finds the handles of their channels,
// and accounts.go and uploads.go fetch channels and their uploads. failure.go classifies errors.
package youtube
