-- +goose Up

-- Before this migration, hashtags and title_folded were only converted to lower case. The function fold_text is FoldText of package db. If two hashtags
-- of a collection are now equal, the hashtag that remains has the earlier of the two times.
UPDATE videos SET title_folded = fold_text(title_folded) WHERE title_folded <> fold_text(title_folded);
INSERT OR IGNORE INTO video_hashtags (organisation_id, tag, video_id)
  SELECT organisation_id, fold_text(tag), video_id FROM video_hashtags WHERE tag <> fold_text(tag);
DELETE FROM video_hashtags WHERE tag <> fold_text(tag);
INSERT INTO collection_hashtags (organisation_id, collection_id, tag, added_at)
  SELECT organisation_id, collection_id, fold_text(tag), added_at FROM collection_hashtags WHERE tag <> fold_text(tag)
  ON CONFLICT (organisation_id, collection_id, tag) DO UPDATE SET added_at = MIN(collection_hashtags.added_at, excluded.added_at);
DELETE FROM collection_hashtags WHERE tag <> fold_text(tag);
-- The lists and sums of the API can change, so ETags that were sent before must not match any more.
UPDATE organisation_totals SET version = version + 1, labels_version = labels_version + 1;

-- +goose Down
