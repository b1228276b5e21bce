-- +goose Up
-- The refusals that a source, or one of its budgets, has met since its last good answer, by class. They pause the source once
-- more than one target has met them: the trouble of one target must not stop the others.
CREATE TABLE source_refusals (
  source  text    NOT NULL,
  class   text    NOT NULL,
  target  text    NOT NULL, -- the first target that was refused
  targets integer NOT NULL, -- 1, or 2 for two or more
  calls   integer NOT NULL,
  PRIMARY KEY (source, class)
);

-- +goose Down
DROP TABLE source_refusals;
