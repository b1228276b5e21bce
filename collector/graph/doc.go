// Package graph calls Meta's Graph API for the sources instagram and facebook.
//
// The main type is [Client]. It sends the requests, classifies errors (a [TargetError] concerns one target, a *source.Failure the whole
// source), and limits its requests by the usage that Meta reports in the headers of its answers (usage.go). pages.go gets the access
// tokens of pages. Start reading at [Client.Get].
package graph
