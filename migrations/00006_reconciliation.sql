-- +goose Up

-- reconciliations are runs that hold a tool's operations of a window, as its
-- business system lists them, against ours.
CREATE TABLE reconciliations (
    id           text        PRIMARY KEY,
    op           text        NOT NULL UNIQUE, -- what asked for it
    version      bigint      NOT NULL,
    tool         text        NOT NULL,
    tool_version integer     NOT NULL,
    from_at      timestamptz NOT NULL,
    to_at        timestamptz NOT NULL,
    sweep        boolean     NOT NULL, -- nobody asked for it
    by_kind      text        NOT NULL,
    by_id        text        NOT NULL,
    by_name      text        NOT NULL,
    state        text        NOT NULL CHECK (state IN ('waiting', 'listing', 'joining', 'comparing', 'done', 'given_up')),
    cursor       text        NOT NULL, -- of the page that comes next
    pages        bigint      NOT NULL,
    listed       bigint      NOT NULL,
    tries        integer     NOT NULL,
    problem      text        NOT NULL,
    asked_at     timestamptz NOT NULL,
    started_at   timestamptz,
    progress_at  timestamptz NOT NULL,
    offer_at     timestamptz NOT NULL,
    ended_at     timestamptz,
    joined_at    timestamptz NOT NULL, -- our attempts are joined up to here
    joined_id    text        NOT NULL,
    compared     text COLLATE "C" NOT NULL, -- the key up to which both sides were compared
    totals       text        NOT NULL,
    staged       boolean     NOT NULL, -- rows of reconciliation_staged are left
    CHECK (from_at < to_at),
    CHECK ((ended_at IS NULL) = (state NOT IN ('done', 'given_up')))
);
CREATE INDEX reconciliations_open ON reconciliations (asked_at, id) WHERE ended_at IS NULL;
CREATE INDEX reconciliations_sweeps ON reconciliations (tool, asked_at DESC, id DESC) WHERE sweep;
CREATE INDEX reconciliations_swept ON reconciliations (tool, to_at DESC) WHERE sweep AND state = 'done';
CREATE INDEX reconciliations_first ON reconciliations (tool, from_at) WHERE sweep;
CREATE INDEX reconciliations_staged ON reconciliations (id) WHERE staged AND ended_at IS NOT NULL;

-- reconciliation_pages are the pages that a run was listed with.
CREATE TABLE reconciliation_pages (
    run_id    text        NOT NULL REFERENCES reconciliations,
    page_id   text        NOT NULL,
    number    bigint      NOT NULL,
    hash      text        NOT NULL,
    items     integer     NOT NULL,
    client_id text        NOT NULL,
    at        timestamptz NOT NULL,
    PRIMARY KEY (run_id, page_id)
);

-- reconciliation_staged is both sides of a run, side by side, until it is over.
CREATE TABLE reconciliation_staged (
    run_id    text        NOT NULL REFERENCES reconciliations,
    key       text COLLATE "C" NOT NULL,
    theirs    text,                   -- the operation as they list it, as JSON
    twice     boolean     NOT NULL DEFAULT false, -- they list it twice, with different content
    action_id text,                   -- ours, with an attempt in the window
    sent_at   timestamptz,            -- the latest of those
    PRIMARY KEY (run_id, key)
);

-- reconciliation_differences is what a run found. What people say of one is an
-- event of its own, under difference_subject: the same difference has it in every
-- run.
CREATE TABLE reconciliation_differences (
    run_id         text        NOT NULL REFERENCES reconciliations,
    key            text COLLATE "C" NOT NULL,
    class          text        NOT NULL CHECK (class IN ('awaiting', 'mismatch', 'ours_only', 'theirs_only')),
    tool           text        NOT NULL,
    scope          text        NOT NULL,
    action_id      text        NOT NULL,
    case_id        text        NOT NULL,
    digest         text        NOT NULL, -- the same difference in another run has the same
    detail         text        NOT NULL, -- both sides, as JSON
    PRIMARY KEY (run_id, key)
);
CREATE INDEX reconciliation_differences_class ON reconciliation_differences (run_id, class, key);
CREATE FUNCTION difference_subject(tool text, key text, digest text) RETURNS text
    LANGUAGE sql IMMUTABLE AS $$ SELECT 'difference:' || tool || ':' || digest || ':' || key $$;

REVOKE DELETE, TRUNCATE ON reconciliations, reconciliation_pages, reconciliation_differences FROM countersign_app;
REVOKE UPDATE ON reconciliation_pages, reconciliation_differences FROM countersign_app;

-- Our records of a window are those with an attempt in it.
CREATE INDEX events_attempted ON events (at, subject) WHERE kind = 'attempted';
