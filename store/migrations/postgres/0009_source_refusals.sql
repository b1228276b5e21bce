-- +goose Up
-- source_refusals counts, by class, the refusals of a source or budget since its last good answer. The source is paused only when more
-- than one target was refused, so that one bad target does not stop the others.
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
