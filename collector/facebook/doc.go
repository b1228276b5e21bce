// Package facebook fetches videos, reels and pages from Facebook's Graph API with an access token.
//
// The token decides which pages can be read. Insights, which include shares, are read only for the operator's own pages. Personal
// profiles are not available in the API.
//
// The main type is [Source]. Start reading at [Source.Fetch]: facebook.go reads videos, insights.go their insights, and accounts.go reads
// pages with their lists of videos. Package graph sends the requests.
package facebook
