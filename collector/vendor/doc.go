// Package vendor fetches videos and accounts from vendors. A vendor is a company that sells the public numbers of platforms.
//
// One implementation serves all vendors. A [Config] describes the API of a vendor in JSON, so that a new vendor needs no new code. The
// folder configs contains the descriptions of some vendors. [Load] reads a description from this folder or from another file.
//
// The main types are [Source] and [Config]. Start reading at [Source.Fetch]. request.go builds requests, answer.go and field.go parse
// answers, and accounts.go requests accounts with their lists of videos. run.go waits for the runs that the calls of some vendors start.
// check.go validates descriptions.
package vendor
