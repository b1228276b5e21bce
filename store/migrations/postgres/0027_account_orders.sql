-- +goose Up

-- Each column by which lists of accounts or collections can be ordered gets an index. The index of the usernames is also used to find the accounts
-- with a given username.
CREATE INDEX accounts_created ON accounts (organisation_id, created_at DESC, id DESC);
CREATE INDEX accounts_username_order ON accounts (organisation_id, username DESC, id DESC);
CREATE INDEX accounts_followers ON accounts (organisation_id, latest_followers_count DESC NULLS LAST, id DESC);
CREATE INDEX accounts_views ON accounts (organisation_id, total_views DESC NULLS LAST, id DESC);
CREATE INDEX accounts_median_views ON accounts (organisation_id, median_views DESC NULLS LAST, id DESC);
CREATE INDEX accounts_uploaded ON accounts (organisation_id, last_uploaded_at DESC NULLS LAST, id DESC);
DROP INDEX collections_name;
CREATE INDEX collections_name ON collections (organisation_id, name DESC, id DESC);
CREATE INDEX collections_created ON collections (organisation_id, created_at DESC, id DESC);
CREATE INDEX collections_updated ON collections (organisation_id, updated_at DESC, id DESC);

-- +goose Down
DROP INDEX accounts_created;
DROP INDEX accounts_username_order;
DROP INDEX accounts_followers;
DROP INDEX accounts_views;
DROP INDEX accounts_median_views;
DROP INDEX accounts_uploaded;
DROP INDEX collections_name;
CREATE INDEX collections_name ON collections (organisation_id, name);
DROP INDEX collections_created;
DROP INDEX collections_updated;
