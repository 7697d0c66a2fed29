-- +goose Up
CREATE TABLE claims ( -- only live ones: a claim that is over frees its thread and its slug
    seat       TEXT   NOT NULL,
    team       TEXT   NOT NULL,
    channel    TEXT   NOT NULL,
    root       TEXT   NOT NULL,
    slug       TEXT   NOT NULL UNIQUE,
    state      TEXT   NOT NULL,
    claimant   TEXT   NOT NULL,
    claimed_at BIGINT NOT NULL,
    repo       TEXT   NOT NULL,
    box        TEXT   NOT NULL,
    session    TEXT   NOT NULL, -- '' until it is bound
    worktree   TEXT   NOT NULL,
    branch     TEXT   NOT NULL,
    number     BIGINT NOT NULL,
    PRIMARY KEY (seat, team, channel, root)
);
CREATE INDEX claims_box ON claims (box, claimed_at);

CREATE TABLE counters ( -- numbers that are given once
    name  TEXT   NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);

CREATE TABLE sessions (
    number        BIGINT   NOT NULL PRIMARY KEY,
    id            TEXT     NOT NULL UNIQUE,
    name          TEXT     NOT NULL,
    kind          TEXT     NOT NULL,
    socket        TEXT     NOT NULL,
    box           TEXT     NOT NULL,
    seat          TEXT     NOT NULL,
    slug          TEXT     NOT NULL,
    repo          TEXT     NOT NULL,
    team          TEXT     NOT NULL,
    channel       TEXT     NOT NULL,
    root          TEXT     NOT NULL,
    ended         SMALLINT NOT NULL,
    registered_at BIGINT   NOT NULL
);
CREATE INDEX sessions_live ON sessions (number) WHERE ended = 0;

CREATE TABLE session_lines (
    session   TEXT   NOT NULL,
    team      TEXT   NOT NULL,
    channel   TEXT   NOT NULL,
    ts        TEXT   NOT NULL,
    seq       BIGINT NOT NULL UNIQUE,
    seat      TEXT   NOT NULL,
    user_id   TEXT   NOT NULL, -- who wrote it
    body      TEXT   NOT NULL,
    state     TEXT   NOT NULL,
    queued_at BIGINT NOT NULL,
    moved_at  BIGINT NOT NULL,
    PRIMARY KEY (session, team, channel, ts)
);
CREATE INDEX session_lines_waiting ON session_lines (session, seq) WHERE state IN ('queued', 'typing');

CREATE TABLE deposits (
    id            TEXT     NOT NULL PRIMARY KEY,
    session       TEXT     NOT NULL,
    seq           BIGINT   NOT NULL UNIQUE,
    kind          TEXT     NOT NULL,
    body          TEXT     NOT NULL,
    dropped       SMALLINT NOT NULL, -- 1: it only repeats what was said
    owner_seat    TEXT     NOT NULL, -- '' until it is first offered
    owner_team    TEXT     NOT NULL,
    owner_channel TEXT     NOT NULL,
    owner_root    TEXT     NOT NULL,
    ts            TEXT     NOT NULL, -- of its post, '' until that is confirmed
    added_at      BIGINT   NOT NULL
);
CREATE INDEX deposits_waiting ON deposits (session, seq) WHERE ts = '' AND dropped = 0;
CREATE INDEX deposits_said ON deposits (session, seq) WHERE kind IN ('say', 'stop');

-- +goose Down
DROP TABLE deposits;
DROP TABLE session_lines;
DROP TABLE sessions;
DROP TABLE counters;
DROP TABLE claims;
