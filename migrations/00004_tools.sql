-- +goose Up

-- tools says which version of a contract is the active one.
CREATE TABLE tools (
    name       text        PRIMARY KEY,
    version    integer     NOT NULL CHECK (version > 0),
    retired_at timestamptz
);
REVOKE DELETE, TRUNCATE ON tools FROM countersign_app;

-- tool_stands tells whether a version of a tool is the one in use, as of this moment
-- and not of when the statement began. Its lock is the one of paused: who takes a
-- tool out of use takes it alone, so that what was proposed before that is there.
-- +goose StatementBegin
CREATE FUNCTION tool_stands(tool text, known integer) RETURNS boolean
    LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(4801, 2);
    RETURN EXISTS (SELECT FROM tools t WHERE t.name = tool AND t.version = known AND t.retired_at IS NULL);
END
$$;
-- +goose StatementEnd

-- tool_versions keeps every contract as it was put. Actions stay with theirs.
CREATE TABLE tool_versions (
    name       text        NOT NULL,
    version    integer     NOT NULL,
    source     bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (name, version)
);
REVOKE UPDATE, DELETE, TRUNCATE ON tool_versions FROM countersign_app;

-- signing_keys sign confirmation tokens. Private keys are sealed with the
-- console's secret.
CREATE TABLE signing_keys (
    kid         text        PRIMARY KEY,
    public_key  bytea       NOT NULL,
    sealed      bytea       NOT NULL,
    active_from timestamptz NOT NULL,
    first       boolean     NOT NULL -- made by the first process that found none
);
CREATE UNIQUE INDEX signing_keys_first ON signing_keys (first) WHERE first;
REVOKE UPDATE, DELETE, TRUNCATE ON signing_keys FROM countersign_app;
