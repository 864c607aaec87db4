-- +goose Up

-- persons are who may sign in. They are never deleted: events name them.
CREATE TABLE persons (
    id            text        PRIMARY KEY,
    version       bigint      NOT NULL,
    username      text        NOT NULL CHECK (username = lower(username)),
    name          text        NOT NULL,
    roles         text[]      NOT NULL,
    tools         text[]      NOT NULL, -- empty: all
    scopes        text[]      NOT NULL, -- empty: all
    actors        text[]      NOT NULL, -- users of the business system that are this person
    lang          text        NOT NULL CHECK (lang IN ('en', 'zh')),
    zone          text        NOT NULL,
    password_hash text, -- argon2id; none: one-time links only
    epoch         integer     NOT NULL, -- sessions and links of another epoch are over
    created_at    timestamptz NOT NULL,
    disabled_at   timestamptz,
    CONSTRAINT persons_username UNIQUE (username)
);
REVOKE DELETE ON persons FROM countersign_app;

-- recounts are proposals whose approvals may be enough since somebody who decided
-- on them was changed. serial is of the latest change: whoever has counted removes
-- only what stood there before.
CREATE TABLE recounts (
    action_id text   PRIMARY KEY,
    serial    bigint GENERATED ALWAYS AS IDENTITY UNIQUE
);

-- recount_decided_by notes every proposal that a person has decided on. It is
-- called once the person's row is locked and looks anew then, so that it sees the
-- decisions which that lock was waiting for.
-- +goose StatementBegin
CREATE FUNCTION recount_decided_by(person text) RETURNS text
    LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO recounts (action_id)
    SELECT a.id FROM actions a WHERE a.state = 'proposed' AND a.deciders <> '{}' AND person = ANY (a.deciders) ORDER BY a.id
    ON CONFLICT (action_id) DO UPDATE SET serial = DEFAULT;
    RETURN person;
END
$$;
-- +goose StatementEnd

-- Somebody can always administer: the last enabled admin stays one. Two admins
-- who would disable each other at once wait here for each other, and the second
-- sees what the first has done.
-- +goose StatementBegin
CREATE FUNCTION keep_an_admin() RETURNS trigger
    LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(4801, 1);
    IF NOT EXISTS (SELECT FROM persons
                    WHERE id <> NEW.id AND disabled_at IS NULL AND 'admin' = ANY (roles)) THEN
        RAISE EXCEPTION 'the last admin has to stay'
            USING ERRCODE = 'check_violation', CONSTRAINT = 'persons_last_admin';
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER persons_last_admin AFTER UPDATE ON persons
    FOR EACH ROW
    WHEN (OLD.disabled_at IS NULL AND 'admin' = ANY (OLD.roles)
          AND NOT (NEW.disabled_at IS NULL AND 'admin' = ANY (NEW.roles)))
    EXECUTE FUNCTION keep_an_admin();

-- sessions are known by the hash of a secret that only the browser has.
CREATE TABLE sessions (
    id         text        PRIMARY KEY,
    hash       bytea       NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    person_id  text        NOT NULL REFERENCES persons,
    epoch      integer     NOT NULL,
    method     text        NOT NULL CHECK (method IN ('password', 'link')),
    started_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    ends_at    timestamptz NOT NULL,
    step_up_at timestamptz,
    agent      text        NOT NULL,
    address    text        NOT NULL,
    kept       text        NOT NULL  -- JSON: small values of the pages
);
CREATE INDEX sessions_person ON sessions (person_id);
CREATE INDEX sessions_ends ON sessions (ends_at);

-- sign_in_links work once.
CREATE TABLE sign_in_links (
    id         text        PRIMARY KEY,
    hash       bytea       NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    person_id  text        NOT NULL REFERENCES persons,
    epoch      integer     NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX sign_in_links_expires ON sign_in_links (expires_at);

-- sign_in_tries counts passwords tried, per hash of name and address.
CREATE TABLE sign_in_tries (
    key   bytea       PRIMARY KEY,
    tries integer     NOT NULL,
    until timestamptz NOT NULL -- then the count begins anew
);
CREATE INDEX sign_in_tries_until ON sign_in_tries (until);

-- clients are programs. They are never deleted: events name them.
CREATE TABLE clients (
    id          text        PRIMARY KEY,
    version     bigint      NOT NULL,
    name        text        NOT NULL,
    owner       text        NOT NULL REFERENCES persons,
    roles       text[]      NOT NULL CHECK (roles <@ ARRAY ['proposer', 'executor', 'reader', 'admin']),
    tools       text[]      NOT NULL, -- empty: all
    scopes      text[]      NOT NULL, -- empty: all
    entries     text[]      NOT NULL, -- empty: all
    created_at  timestamptz NOT NULL,
    disabled_at timestamptz,
    CONSTRAINT clients_name UNIQUE (name)
);
REVOKE DELETE ON clients FROM countersign_app;

-- client_stands tells whether a program is in a version still, as of this moment
-- and not of when the statement began.
-- +goose StatementBegin
CREATE FUNCTION client_stands(client text, known bigint) RETURNS boolean
    LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM clients c WHERE c.id = client AND c.version = known);
END
$$;
-- +goose StatementEnd

-- client_keys holds the hash of each API key. A prefix finds it.
CREATE TABLE client_keys (
    id           text        PRIMARY KEY,
    client_id    text        NOT NULL REFERENCES clients,
    prefix       text        NOT NULL,
    hash         bytea       NOT NULL CHECK (octet_length(hash) = 32),
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz,
    last_seen_at timestamptz,
    revoked_at   timestamptz,
    CONSTRAINT client_keys_prefix UNIQUE (prefix)
);
CREATE INDEX client_keys_client ON client_keys (client_id);
REVOKE DELETE ON client_keys FROM countersign_app;
