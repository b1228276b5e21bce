-- +goose Up

-- The table source_refusals counts how often a source or budget refused calls since its last successful answer, by class of error. The source is
-- paused only if more than one target was refused. So one faulty target does not stop the fetches of other targets.
CREATE TABLE source_refusals (
  source  text    NOT NULL,
  class   text    NOT NULL,
  target  text    NOT NULL, -- the first target that was refused
  targets integer NOT NULL, -- number of different targets that were refused: 1, or 2 for two or more
  calls   integer NOT NULL,
  PRIMARY KEY (source, class)
);

-- +goose Down
DROP TABLE source_refusals;
