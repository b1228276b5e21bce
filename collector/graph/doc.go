// Package graph calls Meta's Graph API for the sources instagram and facebook.
//
// The main type is [Client]. It sends the requests and classifies errors. A [TargetError] concerns one target, and a *source.Failure
// concerns the whole source. The client limits its requests by the usage that Meta reports in the headers of its answers (usage.go).
// pages.go gets the access tokens of Facebook pages, and insights.go requests the insights of videos and posts. Start reading at [Client.Get].
package graph
