-- +goose NO TRANSACTION
-- +goose Up

-- Before this migration, hashtags and title_folded were only converted to lower case. The conversion here is that of FoldText of package db. It skips
-- texts that have only ASCII characters. If two hashtags of a collection are now equal, the hashtag that remains has the earlier of the two times.
--
-- Each organisation has a transaction, so that the programs that still run wait only for a short time. If the migration is interrupted, it can run again.
-- +goose StatementBegin
DO $$
DECLARE
  org uuid;
  old_tag text;
  new_tag text;
BEGIN
  FOREACH org IN ARRAY ARRAY(SELECT organisation_id FROM organisation_totals ORDER BY organisation_id) LOOP
    SET LOCAL lock_timeout = 0;
    -- This statement waits for the organisation's other writers. The lists and sums of the API can change, so ETags that were sent before must not
    -- match any more.
    UPDATE organisation_totals SET version = version + 1, labels_version = labels_version + 1 WHERE organisation_id = org;
    UPDATE videos SET title_folded = f.folded FROM (
      SELECT id, normalize(regexp_replace(replace(title_folded, 'ς', 'σ'), 'i' || chr(775) || '+', 'i', 'g'), NFC) AS folded FROM videos
      WHERE organisation_id = org AND octet_length(title_folded) > char_length(title_folded)) f
    WHERE videos.organisation_id = org AND videos.id = f.id AND videos.title_folded <> f.folded;
    FOR old_tag, new_tag IN
      SELECT tag, normalize(regexp_replace(replace(tag, 'ς', 'σ'), 'i' || chr(775) || '+', 'i', 'g'), NFC) FROM (
        SELECT tag FROM video_hashtags WHERE organisation_id = org AND octet_length(tag) > char_length(tag)
        UNION SELECT tag FROM collection_hashtags WHERE organisation_id = org AND octet_length(tag) > char_length(tag)) t
    LOOP
      CONTINUE WHEN old_tag = new_tag;
      INSERT INTO video_hashtags (organisation_id, tag, video_id)
        SELECT organisation_id, new_tag, video_id FROM video_hashtags WHERE organisation_id = org AND tag = old_tag ON CONFLICT DO NOTHING;
      DELETE FROM video_hashtags WHERE organisation_id = org AND tag = old_tag;
      INSERT INTO collection_hashtags (organisation_id, collection_id, tag, added_at)
        SELECT organisation_id, collection_id, new_tag, added_at FROM collection_hashtags WHERE organisation_id = org AND tag = old_tag
        ON CONFLICT (organisation_id, collection_id, tag) DO UPDATE SET added_at = LEAST(collection_hashtags.added_at, excluded.added_at);
      DELETE FROM collection_hashtags WHERE organisation_id = org AND tag = old_tag;
    END LOOP;
    COMMIT;
  END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
