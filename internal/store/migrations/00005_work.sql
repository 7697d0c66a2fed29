-- +goose Up
CREATE TABLE pulls ( -- a pull request may belong to several threads
    repo_key  TEXT   NOT NULL, -- repo in lower case: GitHub's names have no case
    number    BIGINT NOT NULL,
    seat      TEXT   NOT NULL,
    team      TEXT   NOT NULL,
    channel   TEXT   NOT NULL,
    root      TEXT   NOT NULL,
    repo      TEXT   NOT NULL,
    url       TEXT   NOT NULL,
    branch    TEXT   NOT NULL,
    linked_at BIGINT NOT NULL,
    PRIMARY KEY (repo_key, number, seat, team, channel, root)
);
CREATE INDEX pulls_thread ON pulls (seat, team, channel, root, linked_at);

CREATE TABLE deliveries (
    id      TEXT   NOT NULL PRIMARY KEY,
    seen_at BIGINT NOT NULL
);
CREATE INDEX deliveries_seen ON deliveries (seen_at);

CREATE TABLE phases (
    seat    TEXT NOT NULL,
    team    TEXT NOT NULL,
    channel TEXT NOT NULL,
    root    TEXT NOT NULL,
    ts      TEXT NOT NULL, -- of the message
    shown   TEXT NOT NULL, -- what it shows
    PRIMARY KEY (seat, team, channel, root)
);

CREATE TABLE work (
    seat     TEXT   NOT NULL,
    team     TEXT   NOT NULL,
    channel  TEXT   NOT NULL,
    root     TEXT   NOT NULL,
    slug     TEXT   NOT NULL,
    repo     TEXT   NOT NULL,
    asked_at BIGINT NOT NULL,
    done_at  BIGINT NOT NULL,
    PRIMARY KEY (seat, team, channel, root)
);
CREATE INDEX work_open ON work (seat, asked_at) WHERE done_at = 0;

-- +goose Down
DROP TABLE work;
DROP TABLE phases;
DROP TABLE deliveries;
DROP TABLE pulls;
