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
CREATE INDEX parked_callbacks_list ON parked_callbacks (received_at DESC, webhook_id);

-- pauses stop what is proposed, claimed and attempted: of a tool, of a client as
-- proposer or executor, or in a scope.
CREATE TABLE pauses (
    id         text        PRIMARY KEY,
    kind       text        NOT NULL CHECK (kind IN ('tool', 'client', 'scope')),
    value      text        NOT NULL, -- name of the tool, id of the client, scope
    reason     text        NOT NULL,
    by_name    text        NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz
);
CREATE UNIQUE INDEX pauses_running ON pauses (kind, value) WHERE ended_at IS NULL;
CREATE INDEX pauses_list ON pauses ((ended_at IS NOT NULL), started_at DESC);
REVOKE DELETE, TRUNCATE ON pauses FROM countersign_app;

-- pauses_of are the pauses that stop an action.
-- +goose StatementBegin
CREATE FUNCTION pauses_of(self_tool text, self_client text, self_executor text, self_scope text) RETURNS SETOF pauses
    LANGUAGE sql STABLE AS $$
    SELECT p.* FROM pauses p
     WHERE p.ended_at IS NULL AND (p.kind = 'tool' AND p.value = self_tool
           OR p.kind = 'client' AND p.value IN (self_client, self_executor) OR p.kind = 'scope' AND p.value = self_scope)
$$;
-- +goose StatementEnd

-- paused tells what stops an action: "paused:" and JSON, or nothing. Its lock is
-- shared among all who ask; who pauses takes it alone, so that whatever was let
-- through before a pause is there before the pause is, and nothing after it.
-- +goose StatementBegin
CREATE FUNCTION paused(self_tool text, self_client text, self_executor text, self_scope text) RETURNS text
    LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(4801, 2);
    SELECT 'paused:' || json_build_object('id', p.id, 'kind', p.kind, 'value', p.value, 'reason', p.reason,
                                          'by', p.by_name, 'since', p.started_at) INTO found
      FROM pauses_of(self_tool, self_client, self_executor, self_scope) p
     ORDER BY p.started_at LIMIT 1;
    RETURN coalesce(found, '');
END
$$;
-- +goose StatementEnd
