// Package vendor fetches videos and accounts from vendors, which sell the public numbers of platforms.
//
// One implementation serves all vendors. A [Config] describes the API of a vendor in JSON, so that a new vendor needs no new code. The
// descriptions of some vendors are in the folder configs; [Load] reads them, or a description in a file.
//
// The main types are [Source] and [Config]. Start reading at [Source.Fetch]: request.go builds requests, answer.go and field.go read
// answers, and accounts.go reads accounts with their lists of videos. check.go validates descriptions.
package vendor
