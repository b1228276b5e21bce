package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Outcome returns the outcome of a successful fetch of a video. The target is due again in a day.
func Outcome(db *DB, target queue.Target, facts ingest.VideoFacts) ingest.Outcome {
	return ingest.Outcome{Target: target, Facts: &facts, Details: true, Source: "test",
		NextAt: store.InstantOf(db.Clock.Now().Add(24 * time.Hour)), State: "active"}
}

// Deliver claims all due videos of a platform, stores the given facts as the result of each fetch, and returns the number of videos.
func Deliver(t *testing.T, db *DB, p link.Platform, facts ingest.VideoFacts) int {
	t.Helper()
	return SaveFactsForDueVideos(t, db, p, func(queue.Target) ingest.VideoFacts { return facts })
}

// SaveFactsForDueVideos claims all due videos of a platform, and returns their number. It calls factsOf for each claimed target and stores the
// returned facts as the result of the fetch.
func SaveFactsForDueVideos(t *testing.T, db *DB, p link.Platform, factsOf func(queue.Target) ingest.VideoFacts) int {
	t.Helper()
	n := 0
	for _, c := range Claim(t, db, p, "video") {
		outcomes := make([]ingest.Outcome, len(c.Targets))
		for i, target := range c.Targets {
			outcomes[i] = Outcome(db, target, factsOf(target))
		}
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, outcomes))
		n += len(outcomes)
	}
	return n
}

// DeliverAccount claims the only due TikTok account, and stores the given facts as the result of the fetch.
func DeliverAccount(t *testing.T, db *DB, facts ingest.AccountFacts) {
	t.Helper()
	c := ClaimOne(t, db, link.TikTok, "account")
	require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{AccountOutcome(db, c.Targets[0], facts)}))
}

// AccountOutcome returns the outcome of a successful fetch of an account. The target is due again in a day.
func AccountOutcome(db *DB, target queue.Target, facts ingest.AccountFacts) ingest.Outcome {
	return ingest.Outcome{Account: &facts, Target: target, Source: "test", State: "active",
		NextAt: store.InstantOf(db.Clock.Now().Add(24 * time.Hour))}
}

// Views returns facts that contain only a number of views.
func Views(n int64) ingest.VideoFacts { return ingest.VideoFacts{Views: &n} }

// Measure stores facts about videos (such as numbers of views) as if the videos had been fetched at fetchedAt. It does not use the queue.
func Measure(t *testing.T, db *DB, fetchedAt time.Time, facts map[link.Link]ingest.VideoFacts) {
	t.Helper()
	var outcomes []ingest.Outcome
	for l, f := range facts {
		outcomes = append(outcomes, Outcome(db, queue.Target{Platform: l.Platform, Kind: "video", ExternalID: l.ID}, f))
	}
	require.NoError(t, db.Acknowledge(t.Context(), queue.Claim{}, store.InstantOf(fetchedAt), outcomes))
}

// FactsWithAuthor returns facts with one view and an author. If the id or the handle is "", the facts do not have it.
func FactsWithAuthor(id, handle string) ingest.VideoFacts {
	f := ingest.VideoFacts{Views: new(int64(1))}
	if id != "" {
		f.AccountID = &id
	}
	if handle != "" {
		f.Username = &handle
	}
	return f
}

// FoundVideos returns n videos of @someone, the newest first. The first video was uploaded at newestAt, and each following video was uploaded one
// hour earlier.
func FoundVideos(t *testing.T, n int, newestAt time.Time) []ingest.FoundVideo {
	t.Helper()
	videos := make([]ingest.FoundVideo, n)
	for i, l := range VideoLinks(t, n) {
		at := store.InstantOf(newestAt.Add(-time.Duration(i) * time.Hour))
		videos[i] = ingest.FoundVideo{ID: l.ID, Link: l.Canonical, UploadedAt: &at}
	}
	return videos
}

// ListedAccount returns the result of a fetch of the account @someone. The result contains the given list of videos.
func ListedAccount(videos []ingest.FoundVideo) ingest.AccountFacts {
	return ingest.AccountFacts{ID: new("42"), Username: new("someone"), Videos: videos, Listed: true}
}

// SetDataKind stores that all numbers of the database are real or that all are made up. The database can still
// be empty.
func SetDataKind(t *testing.T, db *DB, kind store.DataKind) {
	t.Helper()
	require.NoError(t, db.DB().Tx(t.Context(), func(tx *gorm.DB) error { return store.RequireDataKind(tx, kind) }))
}
