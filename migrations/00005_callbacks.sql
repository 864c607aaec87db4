-- +goose Up

-- callback_secrets are what business systems sign their callbacks about a tool
-- with, sealed with the console's secret. Several may be good at a time, so that
-- one can follow another.
CREATE TABLE callback_secrets (
    id         text        PRIMARY KEY,
    tool       text        NOT NULL,
    sealed     bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    ends_at    timestamptz -- from when on it is refused
);
CREATE INDEX callback_secrets_tool ON callback_secrets (tool);
REVOKE DELETE, TRUNCATE ON callback_secrets FROM countersign_app;

-- parked_callbacks came before the attempt that they are about. They wait here
-- until it appears; those that waited in vain can still be seen.
CREATE TABLE parked_callbacks (
    tool        text        NOT NULL,
    webhook_id  text        NOT NULL,
    key         text        NOT NULL, -- the execution key that they name, without a step
    body        bytea       NOT NULL,
    received_at timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tool, webhook_id)
);
CREATE INDEX parked_callbacks_expires ON parked_callbacks (expires_at);
