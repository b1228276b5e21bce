-- +goose Up

-- One row for each organisation that has ever had a webhook or read its events. The column position is the position of the organisation's newest
-- event. The column deleted is the position up to which events are missing, because they were deleted, or because none were recorded. Events are
-- recorded while enabled is true. read_at is the time of the last read of the feed, accurate to one hour.
CREATE TABLE event_feeds (
  organisation_id text NOT NULL PRIMARY KEY REFERENCES organisations (id) ON DELETE CASCADE,
  enabled         boolean NOT NULL,
  position        integer NOT NULL,
  deleted         integer NOT NULL,
  read_at         integer NOT NULL
);

-- One row for each event. The column data is JSON. An event that is committed later has a higher position, because the organisation's row in
-- event_feeds is locked until the commit.
CREATE TABLE events (
  organisation_id text NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  position        integer NOT NULL,
  id              text NOT NULL,
  type            text   NOT NULL,
  created_at      integer NOT NULL,
  data            text   NOT NULL,
  PRIMARY KEY (organisation_id, position)
);
CREATE INDEX events_age ON events (organisation_id, created_at, position);

-- One row for each threshold of a video that has already caused an event. It prevents a second event about the same threshold of the same video.
CREATE TABLE video_milestones (
  organisation_id text NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  video_id        text NOT NULL,
  member          text   NOT NULL,
  threshold       integer NOT NULL,
  PRIMARY KEY (organisation_id, video_id, member, threshold)
);

-- One row for each webhook. The columns secret and previous_secret are encrypted. event_types is a comma-separated list, or empty for all types.
-- rotation_id is the id of the request that last replaced the secret.
CREATE TABLE webhooks (
  organisation_id          text NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  id                       text NOT NULL,
  url                      text    NOT NULL,
  description              text    NOT NULL,
  event_types              text    NOT NULL,
  enabled                  boolean NOT NULL,
  disabled_reason          text,
  created_at               integer NOT NULL,
  updated_at               integer NOT NULL,
  secret                   blob NOT NULL,
  previous_secret          blob,
  previous_secret_until    integer,
  rotation_id              text,
  failures                 integer NOT NULL,
  failing_since            integer,
  last_success_at          integer,
  PRIMARY KEY (organisation_id, id)
);

-- One row for each event that is sent to a webhook, with the result of the last attempt to send it. next_at is null if no attempt is due any more.
CREATE TABLE webhook_deliveries (
  organisation_id text NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  id              text NOT NULL,
  webhook_id      text NOT NULL,
  position        integer NOT NULL,
  event_id        text NOT NULL,
  event_type      text    NOT NULL,
  created_at      integer NOT NULL,
  attempts        integer NOT NULL,
  next_at         integer,
  delivered       boolean NOT NULL,
  last_attempt_at integer,
  duration_ms     integer,
  response_status integer,
  response_body   text,
  error           text,
  PRIMARY KEY (organisation_id, id),
  FOREIGN KEY (organisation_id, position) REFERENCES events (organisation_id, position) ON DELETE CASCADE
);
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (organisation_id, position);
CREATE INDEX webhook_deliveries_log ON webhook_deliveries (organisation_id, webhook_id, created_at, id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (organisation_id, webhook_id, next_at, id) WHERE next_at IS NOT NULL;

-- One row for each enabled webhook. due_at is when a delivery is due next. Until claimed_until, no server can claim the webhook, because another
-- server has claimed it, or because an attempt to send to it has failed.
CREATE TABLE webhook_queue (
  organisation_id text NOT NULL,
  webhook_id      text NOT NULL,
  due_at          integer NOT NULL,
  claimed_until   integer NOT NULL,
  token           text,
  PRIMARY KEY (organisation_id, webhook_id)
);
CREATE INDEX webhook_queue_due ON webhook_queue (due_at);

-- +goose Down
DROP TABLE webhook_queue;
DROP TABLE webhook_deliveries;
DROP TABLE webhooks;
DROP TABLE video_milestones;
DROP TABLE events;
DROP TABLE event_feeds;
