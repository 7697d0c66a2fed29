-- +goose Up

-- Threads that a seat drives (A8): its people's lines are the seat's without a mention (D3).
CREATE TABLE drives (
    seat    TEXT   NOT NULL,
    team    TEXT   NOT NULL,
    channel TEXT   NOT NULL,
    root    TEXT   NOT NULL,
    ask_ts  TEXT   NOT NULL,
    PRIMARY KEY (seat, team, channel, root)
);

-- +goose Down
DROP TABLE drives;
