-- The types are those that SQLite and PostgreSQL both take: TEXT, BIGINT, SMALLINT,
-- DOUBLE PRECISION and BYTEA (any name holds bytes in SQLite). Flags are 0 or 1.
-- *_us columns are the microseconds of a Slack ts: what is compared and sorted by.
-- *_at columns are the store's own clock, in microseconds since 1970; 0 is "not yet".

-- +goose Up
CREATE TABLE messages (
    team         TEXT     NOT NULL,
    channel      TEXT     NOT NULL,
    ts           TEXT     NOT NULL,
    ts_us        BIGINT   NOT NULL,
    present      SMALLINT NOT NULL, -- 0: only its deletion is known so far
    root         TEXT     NOT NULL,
    channel_type TEXT     NOT NULL,
    user_id      TEXT     NOT NULL,
    bot_id       TEXT     NOT NULL,
    app_id       TEXT     NOT NULL,
    user_team    TEXT     NOT NULL,
    subtype      TEXT     NOT NULL,
    body         TEXT     NOT NULL,
    files        TEXT     NOT NULL, -- JSON, '' for none
    raw          BYTEA,
    human        SMALLINT NOT NULL, -- 1: written by a person, of whatever team
    edited_ts    TEXT     NOT NULL,
    edited_us    BIGINT   NOT NULL,
    edit_bodies  TEXT     NOT NULL, -- hashes of the bodies seen for this edited_ts
    changed_us   BIGINT   NOT NULL, -- edited_us of the newest edit that changed the body
    changed_at   BIGINT   NOT NULL,
    deleted_ts   TEXT     NOT NULL,
    created_at   BIGINT   NOT NULL,
    PRIMARY KEY (team, channel, ts)
);
CREATE INDEX messages_thread ON messages (team, channel, root, ts_us);
CREATE INDEX messages_recent ON messages (ts_us);
CREATE INDEX messages_people ON messages (team, channel, root, user_id) WHERE human = 1;

CREATE TABLE ledger (
    seat       TEXT     NOT NULL,
    team       TEXT     NOT NULL,
    channel    TEXT     NOT NULL,
    ts         TEXT     NOT NULL,
    ts_us      BIGINT   NOT NULL,
    root       TEXT     NOT NULL,
    author     TEXT     NOT NULL,
    state      TEXT     NOT NULL,
    reason     TEXT     NOT NULL,
    mentioned  SMALLINT NOT NULL,
    route      TEXT     NOT NULL, -- JSON, '' until it is decided
    dispatched SMALLINT NOT NULL,
    turn       TEXT     NOT NULL, -- the turn that took it
    created_at BIGINT   NOT NULL,
    updated_at BIGINT   NOT NULL,
    PRIMARY KEY (seat, team, channel, ts)
);
CREATE INDEX ledger_thread ON ledger (team, channel, root, seat, state, ts_us);
CREATE INDEX ledger_due ON ledger (seat, ts_us) WHERE state = 'owed' AND dispatched = 0;
CREATE INDEX ledger_open ON ledger (seat, updated_at) WHERE state IN ('owed', 'taken');
CREATE INDEX ledger_seen ON ledger (seat, channel, ts_us);

CREATE TABLE reactions (
    team     TEXT     NOT NULL,
    channel  TEXT     NOT NULL,
    ts       TEXT     NOT NULL,
    user_id  TEXT     NOT NULL,
    name     TEXT     NOT NULL,
    event_us BIGINT   NOT NULL,
    removed  SMALLINT NOT NULL,
    PRIMARY KEY (team, channel, ts, user_id, name)
);

CREATE TABLE stops (
    seat    TEXT   NOT NULL,
    team    TEXT   NOT NULL,
    channel TEXT   NOT NULL,
    root    TEXT   NOT NULL, -- '' covers the whole channel
    ts      TEXT   NOT NULL,
    ts_us   BIGINT NOT NULL,
    PRIMARY KEY (seat, team, channel, root)
);

CREATE TABLE raw_events (
    id          TEXT   NOT NULL PRIMARY KEY, -- hash of the rest: a redelivery is one row
    seat        TEXT   NOT NULL,
    envelope_id TEXT   NOT NULL,
    why         TEXT   NOT NULL,
    raw         BYTEA,
    created_at  BIGINT NOT NULL
);

-- +goose Down
DROP TABLE raw_events;
DROP TABLE stops;
DROP TABLE reactions;
DROP TABLE ledger;
DROP TABLE messages;
