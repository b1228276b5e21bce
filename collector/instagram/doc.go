// Package instagram fetches posts and accounts from the Instagram Graph API with the access token of one professional account.
//
// The API returns the posts of this own account with insights, and the posts of other professional accounts by business discovery. The API
// cannot look up a post by the code in its link. A post is therefore searched in the list of its account. If the account's handle is not
// known, the post is searched in the list of the own account only.
//
// The main type is [Source]. Start reading at [Source.Fetch]. media.go finds posts in lists, insights.go requests the insights of own
// posts, accounts.go requests accounts, and own.go requests the own account. Package graph sends the requests.
package instagram
