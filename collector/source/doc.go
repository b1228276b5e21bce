// Package source defines the interface between the collector and its sources. A source is an API that returns the numbers of videos and accounts. The
// API belongs to a platform, or to a vendor (a company that sells such numbers).
//
// The main type is [Source], which the packages in the neighbouring folders implement. A [queue.Target] is the video or account that a source is
// asked for. A [Result] or a [Failure] is the answer of a source. Start reading at [Source]. To add a source, write a package that
// implements Source, run the test suite of package sourcetest against it, and add it to cmd/internal/collect.
package source
