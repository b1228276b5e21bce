package main

import "fmt"

// growthCases returns the cases that compare requests of a large organisation with the same requests of a small organisation. The number of
// videos must have little effect on the time of a request.
func growthCases(b *bench) []benchCase {
	large, small := b.pg.large, b.pg.small
	var out []benchCase
	add := func(name string, of func(o *organisation) step) {
		out = append(out, benchCase{group: "Growth", name: fmt.Sprintf("%s, large versus small organisation", name), goal: 1.5, measured: of(large), limit: of(small)})
	}
	gets := func(name, request string) {
		add(name, func(o *organisation) step { return againStep(5, b.newGetStep(o, sameInEachRound(request))) })
	}
	path := func(page int) string {
		return fmt.Sprintf("%s&page=%d", orderedListing("created_at", 100).path(), page)
	}
	gets("100 videos by created_at", orderedListing("created_at", 100).path())
	gets("100 videos by latest_views", orderedListing("latest_views", 100).path())
	for _, l := range filteredListings(100) {
		gets("100 "+l.name, l.path())
	}
	add("last page of a list after a stop", func(o *organisation) step {
		return repeatedStep(5, b.newFirstGetStep(o, stoppedVideo, path(o.videos/100)))
	})
	add("middle page of a list after a stop", func(o *organisation) step {
		return repeatedStep(5, b.newFirstGetStep(o, stoppedVideo, path(o.videos/200)))
	})
	add("middle page of a list again", func(o *organisation) step {
		return againStep(5, b.newGetStep(o, sameInEachRound(path(o.videos/200))))
	})
	add("GET /videos/{ad_id}", func(o *organisation) step { return repeatedStep(50, b.newGetStep(o, oneVideoPath(o))) })
	for _, days := range []int{readDays, 30} {
		add(fmt.Sprintf("history of a video, %d days", days), func(o *organisation) step {
			history, _ := videoHistoryPathAndQuery(o, days)
			return repeatedStep(20, b.newGetStep(o, history))
		})
	}
	gets("history of all videos, 30 days", organisationHistoryPath())
	return append(out, benchCase{group: "Growth", name: fmt.Sprintf("track %d new links, large versus small organisation", bulkLinks), goal: 1.5,
		measured: b.newTrackStep(b.pg.changed, seriesLarge), limit: b.newTrackStep(b.bulkSmall, seriesSmall)})
}
