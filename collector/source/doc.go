// Package source says what the collector expects of a source: one way to get the numbers of videos and accounts, such as a
// platform's API or a bought vendor.
//
// The main types are [Source], which each folder beside this one implements; [Target], which is what a source is asked for;
// and [Result] and [Failure], which are what a source answers. Start reading at [Source]. To add a source: write a folder
// that implements Source, run the suite of sourcetest against it, and name it in cmd/internal/collect.
package source
