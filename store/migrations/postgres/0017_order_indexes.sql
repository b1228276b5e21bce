-- +goose Up

-- Each column by which lists of videos can be ordered has an index. The indexes of counts and times also contain the column removed. So the
-- database finds the position of a page far from the beginning of a list by reading the index only, without the videos before the page.
DROP INDEX videos_created;
CREATE INDEX videos_created ON videos (organisation_id, created_at DESC, id DESC) INCLUDE (removed);
DROP INDEX videos_updated;
CREATE INDEX videos_updated ON videos (organisation_id, latest_updated_at DESC NULLS LAST, id DESC) INCLUDE (removed);
DROP INDEX videos_uploaded;
CREATE INDEX videos_uploaded ON videos (organisation_id, uploaded_at DESC NULLS LAST, id DESC) INCLUDE (removed);
DROP INDEX videos_views;
CREATE INDEX videos_views ON videos (organisation_id, latest_views DESC NULLS LAST, id DESC) INCLUDE (removed);
DROP INDEX videos_username;
CREATE INDEX videos_username ON videos (organisation_id, username, created_at DESC, id DESC) INCLUDE (removed);
CREATE INDEX videos_likes ON videos (organisation_id, latest_likes DESC NULLS LAST, id DESC) INCLUDE (removed);
CREATE INDEX videos_comments ON videos (organisation_id, latest_comments DESC NULLS LAST, id DESC) INCLUDE (removed);
CREATE INDEX videos_bookmarks ON videos (organisation_id, latest_bookmarks DESC NULLS LAST, id DESC) INCLUDE (removed);
CREATE INDEX videos_shares ON videos (organisation_id, latest_shares DESC NULLS LAST, id DESC) INCLUDE (removed);
CREATE INDEX videos_engagement ON videos (organisation_id, latest_engagement DESC NULLS LAST, id DESC) INCLUDE (removed);

-- +goose Down
DROP INDEX videos_created;
CREATE INDEX videos_created ON videos (organisation_id, created_at DESC, id DESC);
DROP INDEX videos_updated;
CREATE INDEX videos_updated ON videos (organisation_id, latest_updated_at DESC NULLS LAST, id DESC);
DROP INDEX videos_uploaded;
CREATE INDEX videos_uploaded ON videos (organisation_id, uploaded_at DESC NULLS LAST, id DESC);
DROP INDEX videos_views;
CREATE INDEX videos_views ON videos (organisation_id, latest_views DESC NULLS LAST, id DESC);
DROP INDEX videos_username;
CREATE INDEX videos_username ON videos (organisation_id, username, created_at DESC);
DROP INDEX videos_likes;
DROP INDEX videos_comments;
DROP INDEX videos_bookmarks;
DROP INDEX videos_shares;
DROP INDEX videos_engagement;
