-- +goose Up

-- The application works as countersign_app: it connects as the owner with
-- "-c role=countersign_app", so one connection string is enough and the
-- running console still cannot change what only migrations may change.
--
-- Roles belong to the whole cluster, so two databases may get here at once.
-- A database administrator may also have made role and membership beforehand,
-- for an owner that may not make roles itself.
-- +goose StatementBegin
DO $$
BEGIN
    FOR attempt IN 1..50 LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'countersign_app') THEN
                CREATE ROLE countersign_app NOLOGIN;
            END IF;
            GRANT countersign_app TO CURRENT_USER;
            EXIT;
        EXCEPTION
            WHEN duplicate_object OR unique_violation OR internal_error THEN
                -- Another database won the race ("tuple concurrently updated"
                -- is an internal error): look again.
                IF attempt = 50 THEN RAISE; END IF;
                PERFORM pg_sleep(0.02);
            WHEN insufficient_privilege THEN
                IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'countersign_app')
                   OR NOT pg_has_role(CURRENT_USER, 'countersign_app', 'MEMBER') THEN
                    RAISE EXCEPTION 'the role countersign_app is missing, or % is no member of it, and % may not change that',
                        CURRENT_USER, CURRENT_USER
                        USING ERRCODE = 'insufficient_privilege',
                              HINT = format('As an administrator: CREATE ROLE countersign_app NOLOGIN; GRANT countersign_app TO %I;', CURRENT_USER);
                END IF;
                EXIT;
        END;
    END LOOP;
END
$$;
-- +goose StatementEnd

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO countersign_app;

-- What later migrations create is readable and writable; never truncatable.
-- Tables that are only ever added to take UPDATE and DELETE away again.
ALTER DEFAULT PRIVILEGES IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO countersign_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public
    GRANT USAGE ON SEQUENCES TO countersign_app;

-- The console compares this table with the migrations it carries.
GRANT SELECT ON goose_db_version TO countersign_app;

-- app_now is the one clock: every time in the database comes from it. It moves
-- within a transaction, so a command that waited for a lock sees the time after
-- the wait. A connection opened with "-c countersign.clock_skew=3600s" lives one
-- hour later. The body is parsed here, once: no search_path changes its meaning.
CREATE FUNCTION app_now() RETURNS timestamptz
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN clock_timestamp()
        + coalesce(nullif(current_setting('countersign.clock_skew', true), ''), '0s')::interval;

GRANT EXECUTE ON FUNCTION app_now() TO countersign_app;
