-- +goose Up

-- views_gained is the sum of the views that the videos of an account have gained while they were tracked and linked to the account. The first known views of
-- a video are no gain. In accounts, it is the present sum. In account_days, it is the sum at the end of the day. Only differences of two sums have a meaning:
-- the sum of an account that is older than this migration begins with 0 at the account's next fetch. This migration does not set the sum to 0, because
-- collectors of the earlier release do not add to it.
-- views_gained_7d is the present sum minus the sum at the end of the last day that is at least seven days before the account's last row in account_days.
ALTER TABLE accounts ADD COLUMN views_gained bigint;
ALTER TABLE accounts ADD COLUMN views_gained_7d bigint;
ALTER TABLE account_days ADD COLUMN views_gained bigint;
CREATE INDEX accounts_views_gained_7d ON accounts (organisation_id, views_gained_7d DESC NULLS LAST, id DESC);

-- +goose Down
DROP INDEX accounts_views_gained_7d;
ALTER TABLE account_days DROP COLUMN views_gained;
ALTER TABLE accounts DROP COLUMN views_gained_7d;
ALTER TABLE accounts DROP COLUMN views_gained;
