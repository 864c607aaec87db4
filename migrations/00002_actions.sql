-- +goose Up

-- events is the only place where transitions, evidence and administrative
-- changes are stored. It is only ever added to.
CREATE TABLE events (
    subject    text        NOT NULL,
    version    bigint      NOT NULL CHECK (version > 0),
    op         text        NOT NULL,
    kind       text        NOT NULL,
    by_kind    text        NOT NULL CHECK (by_kind IN ('person', 'client', 'system')),
    by_id      text        NOT NULL,
    by_name    text        NOT NULL,
    by_role    text        NOT NULL,
    by_method  text        NOT NULL,
    from_state text        NOT NULL,
    to_state   text        NOT NULL,
    at         timestamptz NOT NULL,
    data       text        NOT NULL,
    PRIMARY KEY (subject, version),
    UNIQUE (subject, op)
);
REVOKE UPDATE, DELETE, TRUNCATE ON events FROM countersign_app;

-- bodies is the removable content of events.
CREATE TABLE bodies (
    subject text   NOT NULL,
    version bigint NOT NULL,
    salt    bytea  NOT NULL,
    content bytea  NOT NULL,
    PRIMARY KEY (subject, version)
);
REVOKE UPDATE, TRUNCATE ON bodies FROM countersign_app;

-- actions is what lists are made from: every column follows from the events.
CREATE TABLE actions (
    id               text        PRIMARY KEY,
    state            text        NOT NULL CHECK (state IN ('draft', 'proposed', 'confirmed', 'executing', 'accepted',
                                     'applied', 'failed', 'conflict', 'result_unknown', 'rejected', 'cancelled', 'expired')),
    version          bigint      NOT NULL,
    revision         integer     NOT NULL,
    create_op        text        NOT NULL UNIQUE,
    tool             text        NOT NULL,
    tool_version     integer     NOT NULL,
    client_id        text        NOT NULL,
    scope            text        NOT NULL,
    task_id          text        NOT NULL,
    actor_id         text        NOT NULL,
    target_type      text,
    target_id        text,
    object_version   text,
    payload_hash     text        NOT NULL,
    proposal_hash    text        NOT NULL,
    content_version  bigint      NOT NULL,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    expires_at       timestamptz,
    due_at           timestamptz,
    work             text,
    work_at          timestamptz, -- from when
    roles            text[]      NOT NULL, -- whose approval is asked for
    deciders         text[]      NOT NULL, -- who has decided on this revision
    confirmation_ref text,
    claimed_by       text,
    writing          boolean     NOT NULL DEFAULT true, -- it changes something
    open_attempt     boolean     NOT NULL, -- an attempt without a definite outcome
    block            text        NOT NULL, -- what an open case holds up
    case_id          text,        -- open
    case_since       timestamptz, -- when it was opened
    case_moved_at    timestamptz, -- when it came to wait for what it waits for: executors, a person or a second one
    case_why         text,        -- why
    case_pending     boolean     NOT NULL DEFAULT false, -- a verdict waits for a second person
    needs_person     boolean     NOT NULL DEFAULT false, -- nothing is left to find out without one
    key_until        timestamptz, -- while it is open: how long the business system surely knows the key
    case_closed_at   timestamptz, -- when the latest case was closed, when none is open
    partly           boolean     NOT NULL DEFAULT false, -- known to be done in part: closed by the end of a linked action
    links            text[]      NOT NULL, -- actions that this one compensates, resumes or replaces
    refs             text[]      NOT NULL, -- every id and hash that somebody may look for
    CHECK ((target_type IS NULL) = (target_id IS NULL)),
    CHECK (expires_at IS NULL OR state <> 'draft'), -- one that was cancelled never has any
    CHECK (expires_at IS NOT NULL OR state NOT IN ('proposed', 'confirmed', 'executing', 'expired')),
    CHECK ((state = 'result_unknown') <= (case_id IS NOT NULL)),
    CHECK ((case_id IS NULL) = (case_since IS NULL) AND (case_pending OR needs_person OR partly) <= (case_id IS NOT NULL)),
    CHECK ((state IN ('confirmed', 'executing')) <= (confirmation_ref IS NOT NULL))
);
REVOKE DELETE, TRUNCATE ON actions FROM countersign_app;
CREATE INDEX actions_queue ON actions (expires_at, id) WHERE state = 'proposed';
CREATE INDEX actions_undecided ON actions (id) WHERE state = 'proposed' AND deciders <> '{}';
CREATE INDEX actions_due ON actions (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX actions_work ON actions (id) WHERE work IS NOT NULL;
CREATE UNIQUE INDEX actions_confirmation ON actions (confirmation_ref) WHERE confirmation_ref IS NOT NULL;
CREATE INDEX actions_target ON actions (target_id, id, target_type) WHERE target_id IS NOT NULL; -- of any type, newest first, too
CREATE INDEX actions_target_held ON actions (target_type, target_id) WHERE case_id IS NOT NULL OR open_attempt;
-- All that makes content the same: with less of it, and before the first ANALYZE, one of the indexes for lists would be taken.
CREATE INDEX actions_content ON actions (payload_hash, tool, actor_id);
CREATE INDEX actions_refs ON actions USING gin (refs) WITH (fastupdate = on);
CREATE INDEX actions_unsettled ON actions (case_id) WHERE case_id IS NOT NULL;
CREATE INDEX actions_case_person ON actions (coalesce(key_until, 'infinity'), case_since, id) WHERE needs_person;
CREATE INDEX actions_case_second ON actions (coalesce(key_until, 'infinity'), case_since, id) WHERE case_pending;
CREATE INDEX actions_case_open ON actions (coalesce(key_until, 'infinity'), case_since, id) WHERE case_id IS NOT NULL;
CREATE INDEX actions_case_news ON actions (case_moved_at) WHERE case_id IS NOT NULL;
CREATE INDEX actions_case_closed ON actions (case_closed_at DESC, id DESC) WHERE case_closed_at IS NOT NULL;
CREATE INDEX actions_links ON actions USING gin (links) WHERE links <> '{}';
CREATE INDEX actions_partly ON actions (id) WHERE partly;
CREATE INDEX actions_client_open ON actions (client_id) WHERE state = 'proposed';
CREATE INDEX actions_claimed ON actions (claimed_by, id) WHERE claimed_by IS NOT NULL;
-- What lists are narrowed by, newest first, however few there are of it.
CREATE INDEX actions_state ON actions (state, id);
CREATE INDEX actions_tool ON actions (tool, id);
CREATE INDEX actions_client ON actions (client_id, id);
CREATE INDEX actions_scope ON actions (scope, id);
CREATE INDEX actions_actor ON actions (actor_id, id);

-- followed_by is an action, linked to this one, that is carried out, has taken
-- effect or may have: this one is not sent again by itself then. Null when there
-- is none.
-- +goose StatementBegin
CREATE FUNCTION followed_by(self text) RETURNS text
    LANGUAGE sql STABLE AS $$
    SELECT l.id FROM actions l
     WHERE l.links && ARRAY[self] AND l.links <> '{}' AND l.state IN ('executing', 'accepted', 'applied', 'result_unknown')
     LIMIT 1
$$;
-- +goose StatementEnd

-- awaited_by is an action, linked to this one, that waits to be approved or
-- carried out: no person has this one sent again then. Null when there is none.
-- +goose StatementBegin
CREATE FUNCTION awaited_by(self text) RETURNS text
    LANGUAGE sql STABLE AS $$
    SELECT l.id FROM actions l
     WHERE l.links && ARRAY[self] AND l.links <> '{}' AND l.state IN ('proposed', 'confirmed') AND l.due_at > app_now()
     LIMIT 1
$$;
-- +goose StatementEnd

-- beside is another action that is linked to the same one as this and has taken
-- effect or may have: it was sent, or people have to find that out. Only one of
-- them is wanted. Null when there is none.
-- +goose StatementBegin
CREATE FUNCTION beside(self text, self_links text[]) RETURNS text
    LANGUAGE sql STABLE AS $$
    SELECT l.id FROM actions l
     WHERE l.links && self_links AND l.links <> '{}' AND l.id <> self AND l.writing
       AND (l.state IN ('accepted', 'applied', 'result_unknown')
         OR l.state = 'executing' AND EXISTS (SELECT FROM events e WHERE e.subject = l.id AND e.kind = 'attempted'))
     LIMIT 1
$$;
-- +goose StatementEnd

-- blocked_by is the open case that holds up an action's target: "blocked:<case>".
-- Null when there is none.
-- +goose StatementBegin
CREATE FUNCTION blocked_by(self text, self_links text[], self_tool text, self_type text, self_id text) RETURNS text
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT 'blocked:' || a.case_id FROM actions a
             WHERE a.target_type = self_type AND a.target_id = self_id AND a.case_id IS NOT NULL AND a.id <> self
               AND NOT a.id = ANY (self_links)
               AND (a.block = 'target' OR a.block = 'tool' AND a.tool = self_tool)
             LIMIT 1);
END
$$;
-- +goose StatementEnd

-- held_up is what keeps an action from being claimed or attempted, as far as
-- other actions do: "linked:<action>", "busy:<action>", "beside:<action>",
-- "blocked:<case>". Null when nothing does.
-- +goose StatementBegin
CREATE FUNCTION held_up(self text, self_links text[], self_tool text, self_type text, self_id text) RETURNS text
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    found text;
BEGIN
    found := followed_by(self); -- an action and what is done in its stead, or undoes it
    IF found IS NOT NULL THEN RETURN 'linked:' || found; END IF;
    IF self_links <> '{}' THEN
        SELECT a.id INTO found FROM actions a WHERE a.id = ANY (self_links) AND a.state = 'executing' LIMIT 1;
        IF found IS NOT NULL THEN RETURN 'busy:' || found; END IF;
        found := beside(self, self_links);
        IF found IS NOT NULL THEN RETURN 'beside:' || found; END IF;
    END IF;
    IF self_id IS NULL THEN
        RETURN NULL;
    END IF;
    found := blocked_by(self, self_links, self_tool, self_type, self_id);
    IF found IS NOT NULL THEN RETURN found; END IF;
    SELECT a.id INTO found FROM actions a
     WHERE a.target_type = self_type AND a.target_id = self_id AND a.id <> self AND a.block <> 'none'
       AND a.open_attempt AND NOT a.id = ANY (self_links)
     LIMIT 1;
    RETURN 'busy:' || found;
END
$$;
-- +goose StatementEnd

-- hold_target takes the one lock of a target, for the rest of the transaction,
-- and then looks, with a fresh view, for what stands in the way. The answer is
-- empty or "duplicate:<action>", "linked:<action>", "beside:<action>",
-- "blocked:<case>", "busy:<action>". Without a target the content is what is locked, and for a run
-- the action with those that it is linked to.
--
-- look is content (propose, submit, revise), same (content that only reads, which
-- nothing holds up), run (claim, attempt, retry) or case (a case opens: only the
-- lock is wanted).
-- +goose StatementBegin
CREATE FUNCTION hold_target(look text, self text, self_links text[], self_actor text, self_tool text,
                            self_type text, self_id text, self_payload text) RETURNS text
    LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found text;
BEGIN
    IF self_id IS NULL AND look = 'case' THEN
        RETURN '';
    ELSIF self_id IS NULL AND look = 'run' THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(o.id, 4802)) FROM (SELECT id FROM unnest(self_links || self) id ORDER BY id) o;
    ELSE
        PERFORM pg_advisory_xact_lock(hashtextextended(
            coalesce(self_type || chr(31) || self_id, self_tool || chr(31) || self_actor || chr(31) || self_payload), 4801));
    END IF;
    IF look = 'run' THEN
        RETURN coalesce(held_up(self, self_links, self_tool, self_type, self_id), '');
    END IF;
    IF look IN ('content', 'same') THEN
        SELECT a.id INTO found FROM actions a
         WHERE a.payload_hash = self_payload AND a.actor_id = self_actor AND a.tool = self_tool AND a.id <> self
           AND NOT a.id = ANY (self_links) -- what it resumes
           AND a.target_type IS NOT DISTINCT FROM self_type AND a.target_id IS NOT DISTINCT FROM self_id
           AND a.state IN ('proposed', 'confirmed', 'executing', 'result_unknown')
           AND NOT (a.state IN ('proposed', 'confirmed') AND a.due_at <= app_now())
         LIMIT 1;
        IF found IS NOT NULL THEN RETURN 'duplicate:' || found; END IF;
    END IF;
    IF look = 'content' AND self_links <> '{}' THEN
        found := beside(self, self_links);
        IF found IS NOT NULL THEN RETURN 'beside:' || found; END IF;
    END IF;
    IF look IN ('case', 'same') OR self_id IS NULL THEN
        RETURN '';
    END IF;
    RETURN coalesce(blocked_by(self, self_links, self_tool, self_type, self_id), '');
END
$$;
-- +goose StatementEnd
