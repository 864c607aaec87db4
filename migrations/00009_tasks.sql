-- +goose Up

-- tasks are groups of actions under one budget. Every column follows from the
-- task's events; what its actions count for is in their own rows.
CREATE TABLE tasks (
    id         text        PRIMARY KEY,
    version    bigint      NOT NULL,
    state      text        NOT NULL CHECK (state IN ('open', 'paused', 'ended')),
    create_op  text        NOT NULL UNIQUE,
    client_id  text        NOT NULL,
    created_at timestamptz NOT NULL,
    reached    text        NOT NULL, -- the limit that paused it
    ends_at    timestamptz, -- from when on its time is used up; null for no limit, here and below
    max_reads  bigint,
    max_writes bigint,
    reads      bigint      NOT NULL, -- that its program reported: beside those that are actions
    CHECK ((state = 'paused') = (reached <> ''))
);
CREATE INDEX tasks_due ON tasks (ends_at, id) WHERE state = 'open' AND ends_at IS NOT NULL;
REVOKE DELETE, TRUNCATE ON tasks FROM countersign_app;

-- What an action counts for in the budget of its task, as its events say.
ALTER TABLE actions ADD COLUMN reads integer NOT NULL DEFAULT 0;
ALTER TABLE actions ADD COLUMN writes integer NOT NULL DEFAULT 0;
ALTER TABLE actions ADD COLUMN task_look text NOT NULL DEFAULT ''; -- at the budget, that belongs to its being claimed now: run, retry
CREATE INDEX actions_task ON actions (task_id, id) WHERE task_id <> '';

-- task_stops is the limit of a task's budget that stands in the way of n more.
-- Null when none does; see hold_task for look.
-- +goose StatementBegin
CREATE FUNCTION task_stops(look text, self_task text, self_client text, n bigint) RETURNS text
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    k    tasks%ROWTYPE;
    used bigint;
BEGIN
    SELECT * INTO k FROM tasks WHERE id = self_task AND client_id = self_client;
    IF k.state <> 'open' THEN
        RETURN CASE k.state WHEN 'ended' THEN 'ended' ELSE k.reached END;
    ELSIF k.ends_at <= app_now() THEN
        RETURN 'elapsed';
    ELSIF look IN ('write', 'retry') AND k.max_writes IS NOT NULL THEN
        SELECT coalesce(sum(a.writes), 0) INTO used FROM actions a WHERE a.task_id = self_task AND a.task_id <> '';
        IF used + n > k.max_writes THEN RETURN 'writes'; END IF;
    ELSIF look = 'read' AND k.max_reads IS NOT NULL THEN
        SELECT coalesce(sum(a.reads), 0) INTO used FROM actions a WHERE a.task_id = self_task AND a.task_id <> '';
        IF used + k.reads + n > k.max_reads THEN RETURN 'reads'; END IF;
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- hold_task takes the one lock of a task, for the rest of the transaction, and
-- then looks, with a fresh view, whether its budget allows n more. The answer is
-- empty, "task:" when the client has no such task, or "budget:" and JSON.
--
-- look is lock (only the lock is wanted), open (something is drafted or revised),
-- read or write (proposed), run (claim, first attempt) or retry (one more write).
-- +goose StatementBegin
CREATE FUNCTION hold_task(look text, self_task text, self_client text, n bigint) RETURNS text
    LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    stop text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(self_task, 4802));
    IF look = 'lock' THEN
        RETURN '';
    END IF;
    IF NOT EXISTS (SELECT FROM tasks WHERE id = self_task AND client_id = self_client) THEN
        RETURN CASE WHEN look IN ('run', 'retry') THEN '' ELSE 'task:' END;
    END IF;
    stop := task_stops(look, self_task, self_client, n);
    IF stop IS NULL THEN
        RETURN '';
    END IF;
    RETURN 'budget:' || json_build_object('task', self_task, 'limit', stop);
END
$$;
-- +goose StatementEnd
