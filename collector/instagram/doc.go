// Package instagram fetches posts and accounts from the Instagram Graph API with the access token of one professional account of the
// operator.
//
// The API returns the posts of the operator's account with insights. It returns the posts of other professional accounts by business
// discovery, without insights. The API cannot look up a post by the code in its link. The source therefore looks for a post in the
// account's list of posts. If the account's handle is not known, the source looks only in the list of the operator's account.
//
// The main type is [Source]. Start reading at [Source.Fetch]. media.go finds posts in lists, and accounts.go requests accounts. insights.go
// requests insights, and own.go requests the profile of the operator's account. Package graph sends the requests.
package instagram
