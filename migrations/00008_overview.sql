-- +goose Up

-- executors is what executor processes say of themselves, several times a
-- minute. Nothing depends on it: it is for people to see, and goes a day after a
-- process was last heard of.
CREATE TABLE executors (
    client_id text        NOT NULL REFERENCES clients,
    instance  text        NOT NULL, -- made up by the process
    name      text        NOT NULL,
    tools     text[]      NOT NULL, -- names, or prefixes that end in "*"
    systems   text        NOT NULL, -- JSON: the business systems and their breakers
    seen_at   timestamptz NOT NULL,
    PRIMARY KEY (client_id, instance)
);
CREATE INDEX executors_seen ON executors (seen_at);

-- decided_in tells how many seconds people took to decide on what they were
-- shown last: -1 when nobody did in time, null while it waits or was decided by
-- nobody's hand.
CREATE FUNCTION decided_in(action text) RETURNS double precision
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (
        SELECT CASE WHEN d.kind = 'expired' THEN -1 ELSE extract(epoch FROM d.at - (
                SELECT p.at FROM events p
                 WHERE p.subject = d.subject AND p.version < d.version AND p.kind IN ('proposed', 'submitted', 'revised')
                 ORDER BY p.version DESC LIMIT 1)) END
          FROM events d
         WHERE d.subject = action AND d.from_state = 'proposed'
           AND (d.kind = 'decided' AND d.to_state IN ('confirmed', 'rejected') OR d.kind = 'expired')
         ORDER BY d.version LIMIT 1);

GRANT EXECUTE ON FUNCTION decided_in(text) TO countersign_app;
