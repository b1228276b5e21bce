// Package facebook fetches videos, reels and pages from Facebook's Graph API with an access token.
//
// The token decides which pages can be read. Insights, which include shares, are requested only for the operator's own pages. The API does
// not return personal profiles.
//
// The main type is [Source]. Start reading at [Source.Fetch]. facebook.go requests videos, insights.go requests their insights, and
// accounts.go requests pages with their lists of videos. Package graph sends the requests.
package facebook
