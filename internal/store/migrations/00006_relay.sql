-- +goose Up
CREATE TABLE relays (
    id         TEXT     NOT NULL PRIMARY KEY, -- channel/ts of the line that opened it
    seat       TEXT     NOT NULL,
    team       TEXT     NOT NULL,
    channel    TEXT     NOT NULL,
    user_id    TEXT     NOT NULL, -- whose lines it carries
    session    TEXT     NOT NULL,
    number     BIGINT   NOT NULL,
    box        TEXT     NOT NULL,
    opened_ts  TEXT     NOT NULL,
    opened_us  BIGINT   NOT NULL,
    closed_ts  TEXT     NOT NULL, -- '' while it is open
    closed_us  BIGINT   NOT NULL,
    awaiting   SMALLINT NOT NULL, -- 1: a line was typed whose turn has not ended
    typed_at   BIGINT   NOT NULL,
    opened_at  BIGINT   NOT NULL,
    closed_at  BIGINT   NOT NULL
);
CREATE UNIQUE INDEX relays_open ON relays (seat, team, channel) WHERE closed_us = 0;
CREATE INDEX relays_live ON relays (box) WHERE closed_us = 0 OR awaiting = 1;
CREATE INDEX relays_session ON relays (session);

ALTER TABLE session_lines ADD COLUMN relay TEXT NOT NULL DEFAULT '';
CREATE INDEX session_lines_relay ON session_lines (relay) WHERE relay <> '' AND state IN ('queued', 'typing');
CREATE INDEX session_lines_typed ON session_lines (session, moved_at) WHERE state IN ('typing', 'typed', 'unsure');
CREATE INDEX messages_by_person ON messages (team, channel, user_id, ts_us);

-- +goose Down
DROP INDEX messages_by_person;
DROP INDEX session_lines_typed;
DROP INDEX session_lines_relay;
ALTER TABLE session_lines DROP COLUMN relay;
DROP TABLE relays;
