// Package instagram fetches posts and accounts from the Instagram Graph API with the access token of one professional account.
//
// The API returns the posts of this own account with insights, and the posts of other professional accounts by business discovery. It
// cannot look up a post by its code: a post is found in the list of its account. Without the account's handle, a post can be found in the
// list of the own account only.
//
// The main type is [Source]. Start reading at [Source.Fetch]: media.go finds posts in lists, insights.go reads the insights of own posts,
// accounts.go reads accounts, and own.go the own account. Package graph sends the requests.
package instagram
