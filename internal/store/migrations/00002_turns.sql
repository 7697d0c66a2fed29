-- +goose Up
CREATE TABLE turns (
    id           TEXT             NOT NULL PRIMARY KEY,
    seat         TEXT             NOT NULL,
    team         TEXT             NOT NULL,
    channel      TEXT             NOT NULL,
    root         TEXT             NOT NULL,
    session      TEXT             NOT NULL,
    box          TEXT             NOT NULL,
    started_at   BIGINT           NOT NULL,
    ended_at     BIGINT           NOT NULL,
    state        TEXT             NOT NULL,
    reason       TEXT             NOT NULL,
    kept_at      BIGINT           NOT NULL, -- when its answer was kept
    answer       TEXT             NOT NULL,
    answer_files TEXT             NOT NULL, -- JSON, '' for none
    model        TEXT             NOT NULL,
    cost_usd     DOUBLE PRECISION NOT NULL,
    duration_us  BIGINT           NOT NULL
);
CREATE INDEX turns_thread ON turns (seat, team, channel, root, started_at);
CREATE INDEX turns_kept ON turns (kept_at);

CREATE TABLE processes (
    run_id      TEXT   NOT NULL PRIMARY KEY,
    turn_id     TEXT   NOT NULL,
    seat        TEXT   NOT NULL,
    team        TEXT   NOT NULL,
    channel     TEXT   NOT NULL,
    root        TEXT   NOT NULL,
    box         TEXT   NOT NULL,
    pid         BIGINT NOT NULL,
    pgid        BIGINT NOT NULL,
    start_ticks BIGINT NOT NULL,
    boot_id     TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    dead_at     BIGINT NOT NULL
);
CREATE INDEX processes_live ON processes (box, seat) WHERE dead_at = 0;

-- +goose Down
DROP TABLE processes;
DROP TABLE turns;
