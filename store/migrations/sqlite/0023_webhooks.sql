-- +goose Up
-- One row for each organisation that has ever received or read events. position is the position of its newest event. deleted is the
-- position up to which events are missing, because they were deleted, or because none were recorded. Events are recorded while enabled is
-- true. read_at is about when the feed was last read.
CREATE TABLE event_feeds (
  organisation_id text NOT NULL PRIMARY KEY REFERENCES organisations (id) ON DELETE CASCADE,
  enabled         boolean NOT NULL,
  position        integer NOT NULL,
  deleted         integer NOT NULL,
  read_at         integer NOT NULL
);

-- One row for each event. data is JSON. Positions have no order other than that of commits, because the organisation's row in event_feeds is
-- locked until the commit.
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

-- One row for each threshold of a video about which there was an event, so that there is only one event about it.
CREATE TABLE video_milestones (
  organisation_id text NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  video_id        text NOT NULL,
  member          text   NOT NULL,
  threshold       integer NOT NULL,
  PRIMARY KEY (organisation_id, video_id, member, threshold)
);

-- One row for each endpoint. secret and previous_secret are encrypted. event_types is a comma-separated list, or empty for all types.
-- rotation_id names the request that replaced the secret last.
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

-- One row for each event that is sent to an endpoint, with the result of its last attempt. next_at is null if no attempt is due any more.
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

-- One row for each enabled endpoint. due_at is when a delivery is due next. Before claimed_until, no server can claim the endpoint: another server has
-- claimed it, or an attempt has failed.
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
