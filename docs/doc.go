// Package docs embeds the guides for callers. Its tests check the documents in this folder and write the generated ones:
//
//	go test ./docs -update
//
// writes coverage.md, errors.md, the tables of performance.md, bench.svg and history.svg.
package docs
