package store

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Effective membership (interface.md 4): a video is in a collection when it was added, when its account was added, or
// when one of the collection's hashtags stands in its caption. The statements below and effectiveMembers say so, and
// nothing else does.

// effectiveLabels gives the pairs (video_id, collection) for the videos @videos of organisation @org.
const effectiveLabels = `
SELECT m.video_id, c.id, c.name FROM collection_videos m
  JOIN collections c ON c.organisation_id = m.organisation_id AND c.id = m.collection_id
 WHERE m.organisation_id = @org AND m.video_id IN @videos
UNION
SELECT v.id, c.id, c.name FROM videos v
  JOIN collection_accounts m ON m.organisation_id = v.organisation_id AND m.account_id = v.linked_account_id
  JOIN collections c ON c.organisation_id = m.organisation_id AND c.id = m.collection_id
 WHERE v.organisation_id = @org AND v.id IN @videos
UNION
SELECT h.video_id, c.id, c.name FROM video_hashtags h
  JOIN collection_hashtags m ON m.organisation_id = h.organisation_id AND m.tag = h.tag
  JOIN collections c ON c.organisation_id = m.organisation_id AND c.id = m.collection_id
 WHERE h.organisation_id = @org AND h.video_id IN @videos
 ORDER BY 3, 2`

// inAnyCollection is the condition that a video is effectively in a collection whose name or id is among @names.
const inAnyCollection = `EXISTS (
SELECT 1 FROM collections c WHERE c.organisation_id = videos.organisation_id AND (c.name IN @names OR CAST(c.id AS text) IN @names) AND (
  EXISTS (SELECT 1 FROM collection_videos m WHERE m.organisation_id = c.organisation_id AND m.collection_id = c.id AND m.video_id = videos.id)
  OR EXISTS (SELECT 1 FROM collection_accounts m WHERE m.organisation_id = c.organisation_id AND m.collection_id = c.id AND m.account_id = videos.linked_account_id)
  OR EXISTS (SELECT 1 FROM collection_hashtags m JOIN video_hashtags h ON h.organisation_id = m.organisation_id AND h.tag = m.tag
              WHERE m.organisation_id = c.organisation_id AND m.collection_id = c.id AND h.video_id = videos.id)))`

// inCollection is the condition that a video is effectively in the collection @collection.
const inCollection = `(
  EXISTS (SELECT 1 FROM collection_videos m WHERE m.organisation_id = videos.organisation_id AND m.collection_id = @collection AND m.video_id = videos.id)
  OR EXISTS (SELECT 1 FROM collection_accounts m WHERE m.organisation_id = videos.organisation_id AND m.collection_id = @collection AND m.account_id = videos.linked_account_id)
  OR EXISTS (SELECT 1 FROM collection_hashtags m JOIN video_hashtags h ON h.organisation_id = m.organisation_id AND h.tag = m.tag
              WHERE m.organisation_id = videos.organisation_id AND m.collection_id = @collection AND h.video_id = videos.id))`

// namesAndIDs adds to names of collections, for those that are ids, the spelling in which ids are compared.
func namesAndIDs(names []string) []string {
	out := slices.Clone(names)
	for _, n := range names {
		if id, err := uuid.Parse(n); err == nil {
			out = append(out, id.String())
		}
	}
	return out
}

// labelChunk bounds the ids of one statement.
const labelChunk = 1000

// label fills the Labels of videos.
func (o *Org) label(ctx context.Context, videos []Video) error {
	at := make(map[uuid.UUID]int, len(videos))
	for i := range videos {
		at[videos[i].ID] = i
	}
	for start := 0; start < len(videos); start += labelChunk {
		chunk := videos[start:min(start+labelChunk, len(videos))]
		ids := make([]uuid.UUID, len(chunk))
		for i := range chunk {
			ids[i] = chunk[i].ID
		}
		var pairs []struct {
			VideoID uuid.UUID
			ID      uuid.UUID
			Name    string
		}
		err := o.s.read.WithContext(ctx).Raw(effectiveLabels, map[string]any{"org": o.id, "videos": ids}).Scan(&pairs).Error
		if err != nil {
			return translate(err)
		}
		for _, p := range pairs {
			v := &videos[at[p.VideoID]]
			v.Labels = append(v.Labels, Label{ID: p.ID, Name: p.Name})
		}
	}
	return nil
}

// FoldTag returns a hashtag as it is stored and compared: without "#" (narrow or wide), lower case.
func FoldTag(s string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(s), "#"), "＃"))
}
