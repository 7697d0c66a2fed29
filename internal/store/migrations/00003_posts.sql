-- +goose Up
CREATE TABLE posts (
    id         TEXT   NOT NULL,
    part       BIGINT NOT NULL,
    parts      BIGINT NOT NULL,
    kind       TEXT   NOT NULL,
    seat       TEXT   NOT NULL,
    team       TEXT   NOT NULL,
    channel    TEXT   NOT NULL,
    root       TEXT   NOT NULL,
    ts         TEXT   NOT NULL, -- '' until Slack is known to have it
    attempts   BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (id, part)
);
CREATE INDEX posts_thread ON posts (team, channel, root);

CREATE TABLE post_files (
    post_id    TEXT     NOT NULL,
    part       BIGINT   NOT NULL,
    name       TEXT     NOT NULL,
    file_id    TEXT     NOT NULL,
    confirmed  SMALLINT NOT NULL,
    created_at BIGINT   NOT NULL,
    PRIMARY KEY (post_id, file_id)
);

CREATE TABLE attempts (
    id          TEXT   NOT NULL PRIMARY KEY, -- hash of the token
    token       BYTEA  NOT NULL,
    workflow    TEXT   NOT NULL,
    run         TEXT   NOT NULL,
    activity    TEXT   NOT NULL,
    type        TEXT   NOT NULL,
    box         TEXT   NOT NULL,
    pid         BIGINT NOT NULL,
    start_ticks BIGINT NOT NULL,
    boot_id     TEXT   NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX attempts_box ON attempts (box);

-- +goose Down
DROP TABLE attempts;
DROP TABLE post_files;
DROP TABLE posts;
