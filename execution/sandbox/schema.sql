CREATE SCHEMA IF NOT EXISTS sandbox;

-- One row per key that was decided. No row: nothing was done under that key yet.
CREATE TABLE IF NOT EXISTS sandbox.operations (
    system      text        NOT NULL,
    key         text        NOT NULL,
    name        text        NOT NULL,              -- set_price, refund_order, cancel_order, …; fence when only fenced
    fingerprint text        NOT NULL,              -- what the key is bound to; '' when only fenced
    status      text        NOT NULL CHECK (status IN ('ACCEPTED', 'QUEUED', 'SUCCEEDED', 'FAILED', 'FENCED')),
    object      text,
    actor       text,
    http_status integer,
    etag        text        NOT NULL DEFAULT '',
    body        text,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    utc_offset  integer     NOT NULL DEFAULT 0,    -- minutes; how the time is written
    PRIMARY KEY (system, key)
);
CREATE INDEX IF NOT EXISTS operations_window ON sandbox.operations (system, at, key);

CREATE TABLE IF NOT EXISTS sandbox.people (
    id            text    PRIMARY KEY,
    name          text    NOT NULL,
    may_set_price boolean NOT NULL DEFAULT false
);

CREATE TABLE IF NOT EXISTS sandbox.products (
    id          text        PRIMARY KEY,
    name        text        NOT NULL,
    price_cents bigint      NOT NULL CHECK (price_cents > 0),
    currency    text        NOT NULL DEFAULT 'EUR',
    price_list  text        NOT NULL,
    status      text        NOT NULL DEFAULT 'on_sale' CHECK (status IN ('on_sale', 'discontinued')),
    version     bigint      NOT NULL DEFAULT 1,
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Every real change of a price. The key is deliberately not unique here: should
-- the idempotency record ever fail, this table shows it.
CREATE TABLE IF NOT EXISTS sandbox.price_changes (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key        text        NOT NULL,
    product_id text        NOT NULL REFERENCES sandbox.products,
    old_cents  bigint      NOT NULL,
    new_cents  bigint      NOT NULL,
    version    bigint      NOT NULL,
    actor      text,
    at         timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS price_changes_key ON sandbox.price_changes (key);

-- Every notice of a price that really went out; the key is not unique, as above.
CREATE TABLE IF NOT EXISTS sandbox.price_notices (
    id          bigint      GENERATED ALWAYS AS IDENTITY (START WITH 70001) PRIMARY KEY,
    key         text        NOT NULL,
    product_id  text        NOT NULL REFERENCES sandbox.products,
    price_cents bigint      NOT NULL,
    version     bigint      NOT NULL,
    actor       text,
    at          timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS price_notices_key ON sandbox.price_notices (key);
CREATE INDEX IF NOT EXISTS price_notices_product ON sandbox.price_notices (product_id, id);

-- What the catalogue really did, by key.
CREATE OR REPLACE VIEW sandbox.catalog_effects AS
    SELECT key FROM sandbox.price_changes UNION ALL SELECT key FROM sandbox.price_notices;

CREATE TABLE IF NOT EXISTS sandbox.orders (
    id             text        PRIMARY KEY,
    customer_id    text        NOT NULL,
    customer_name  text        NOT NULL,
    placed_at      timestamptz NOT NULL,
    paid_cents     bigint      NOT NULL CHECK (paid_cents > 0),
    refunded_cents bigint      NOT NULL DEFAULT 0 CHECK (refunded_cents BETWEEN 0 AND paid_cents),
    currency       text        NOT NULL DEFAULT 'EUR',
    status         text        NOT NULL DEFAULT 'paid' CHECK (status IN ('paid', 'partly_refunded', 'refunded', 'closed')),
    version        bigint      NOT NULL DEFAULT 1,
    settles_after_ms integer   CHECK (settles_after_ms > 0)  -- null: refunds are paid at once
);

-- Every refund that was really paid out; the key is not unique, as above.
CREATE TABLE IF NOT EXISTS sandbox.refunds (
    id           bigint      GENERATED ALWAYS AS IDENTITY (START WITH 500001) PRIMARY KEY,
    key          text        NOT NULL,
    order_id     text        NOT NULL REFERENCES sandbox.orders,
    amount_cents bigint      NOT NULL CHECK (amount_cents > 0),
    reason       text        NOT NULL,
    actor        text,
    at           timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS refunds_key ON sandbox.refunds (key);
CREATE INDEX IF NOT EXISTS refunds_order ON sandbox.refunds (order_id);

-- Refunds that were accepted and are still to be paid.
CREATE TABLE IF NOT EXISTS sandbox.accepted_refunds (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key          text        NOT NULL,
    order_id     text        NOT NULL REFERENCES sandbox.orders,
    amount_cents bigint      NOT NULL,
    reason       text        NOT NULL,
    actor        text        NOT NULL,
    delivery     text        NOT NULL,             -- how it goes on, as JSON
    delay_ms     integer     NOT NULL,
    trace        text        NOT NULL,             -- traceparent of the request; empty without one
    queued       boolean     NOT NULL DEFAULT false,
    due_at       timestamptz NOT NULL,
    at           timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS accepted_refunds_due ON sandbox.accepted_refunds (due_at, id);
CREATE INDEX IF NOT EXISTS accepted_refunds_key ON sandbox.accepted_refunds (key);

-- The outbox. A row is written with what it tells of, and delivered afterwards.
CREATE TABLE IF NOT EXISTS sandbox.callbacks (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    system      text        NOT NULL,
    key         text        NOT NULL,
    message_id  text        NOT NULL,
    forged      text        NOT NULL,
    body        text        NOT NULL,
    trace       text        NOT NULL,             -- traceparent of the request that it tells of
    remaining   integer     NOT NULL,
    delivered   integer     NOT NULL DEFAULT 0,
    tries       integer     NOT NULL DEFAULT 0,
    last_status integer,
    due_at      timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS callbacks_due ON sandbox.callbacks (due_at, id) WHERE remaining > 0;
CREATE INDEX IF NOT EXISTS callbacks_key ON sandbox.callbacks (system, key);

CREATE TABLE IF NOT EXISTS sandbox.callback_targets (
    system  text PRIMARY KEY,
    url     text NOT NULL,
    signing text NOT NULL
);

-- The order desk's own orders. How cancelling and restoring end is a property
-- of the order.
CREATE TABLE IF NOT EXISTS sandbox.shop_orders (
    id                text        PRIMARY KEY,
    status            text        NOT NULL DEFAULT 'paid' CHECK (status IN ('paid', 'cancelled', 'shipped', 'settled')),
    cancelled_at      timestamptz CHECK ((cancelled_at IS NOT NULL) = (status = 'cancelled')),
    cancel_reason     text,
    customer_id       text        NOT NULL,
    customer_name     text        NOT NULL,
    placed_at         timestamptz NOT NULL,
    total_cents       bigint      NOT NULL CHECK (total_cents > 0),
    currency          text        NOT NULL DEFAULT 'EUR',
    coupon_code       text,
    coupon_status     text        CHECK (coupon_status IN ('valid', 'void')),
    coupon_cents      bigint      NOT NULL DEFAULT 0 CHECK (coupon_cents >= 0),
    coupon_changed_at timestamptz,
    version           bigint      NOT NULL DEFAULT 1,
    updated_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    cancels           text        NOT NULL DEFAULT 'properly' CHECK (cancels IN ('properly', 'in_word', 'coupon_only')),
    restores          text        NOT NULL DEFAULT 'properly' CHECK (restores IN ('properly', 'in_word')),
    CHECK ((coupon_code IS NULL) = (coupon_status IS NULL))
);

-- Every real change of an order; the key is not unique, as above.
CREATE TABLE IF NOT EXISTS sandbox.order_changes (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key      text        NOT NULL,
    order_id text        NOT NULL REFERENCES sandbox.shop_orders,
    change   text        NOT NULL CHECK (change IN ('cancelled', 'coupon_voided', 'coupon_restored')),
    version  bigint      NOT NULL,
    actor    text,
    at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS order_changes_key ON sandbox.order_changes (key);

-- The message service. What it holds in memory is a table here, so that any
-- process serves it; a restart empties it.
CREATE TABLE IF NOT EXISTS sandbox.message_conversations (
    id   text PRIMARY KEY,
    name text NOT NULL
);
CREATE TABLE IF NOT EXISTS sandbox.message_members (
    conversation_id text NOT NULL REFERENCES sandbox.message_conversations,
    person_id       text NOT NULL,
    PRIMARY KEY (conversation_id, person_id)
);
CREATE UNLOGGED TABLE IF NOT EXISTS sandbox.messages (
    conversation_id text        NOT NULL,
    id              text        NOT NULL,
    author          text        NOT NULL,
    body            text        NOT NULL CHECK (body <> ''),
    accepted_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (conversation_id, id)
);

-- Every message that was ever taken, by its id; the key is not unique, as above.
CREATE TABLE IF NOT EXISTS sandbox.message_effects (
    key             text        NOT NULL,
    conversation_id text        NOT NULL,
    author          text        NOT NULL,
    body            text        NOT NULL,
    at              timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS message_effects_key ON sandbox.message_effects (key);

-- What may be sent: one rule is in force, any number are proposed.
CREATE TABLE IF NOT EXISTS sandbox.message_rules (
    document_id         text        PRIMARY KEY,
    name                text        NOT NULL,
    status              text        NOT NULL CHECK (status IN ('current', 'proposed')),
    rule                text        NOT NULL,
    body_limit_bytes    integer     NOT NULL CHECK (body_limit_bytes > 0),
    request_limit_bytes integer     NOT NULL CHECK (request_limit_bytes > 0),
    updated_at          timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX IF NOT EXISTS message_rules_current ON sandbox.message_rules (status) WHERE status = 'current';

-- What the carrier says of the order desk's orders.
CREATE TABLE IF NOT EXISTS sandbox.parcels (
    id            bigint      PRIMARY KEY,
    order_id      text        NOT NULL REFERENCES sandbox.shop_orders,
    carrier       text        NOT NULL,
    status        text        NOT NULL CHECK (status IN ('in_transit', 'delivered', 'returned')),
    signed        boolean     NOT NULL DEFAULT false,
    scans         integer     NOT NULL,
    observed_at   timestamptz NOT NULL,
    cost_cents    bigint      NOT NULL,
    risk_mark     text        NOT NULL,
    internal_note text        NOT NULL
);
CREATE INDEX IF NOT EXISTS parcels_order ON sandbox.parcels (order_id, id);

-- Every request as it came in, one row per request on the wire.
CREATE TABLE IF NOT EXISTS sandbox.calls (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    system     text        NOT NULL,
    method     text        NOT NULL,
    path       text        NOT NULL,
    key        text        NOT NULL,
    object     text        NOT NULL,
    actor      text        NOT NULL,
    credential text        NOT NULL,
    fault      text        NOT NULL DEFAULT '',
    status     integer                               -- null: not answered yet; 0: never answered
);
CREATE INDEX IF NOT EXISTS calls_key ON sandbox.calls (system, key);

-- Faults that wait for a matching request. An empty text or null matches any.
CREATE TABLE IF NOT EXISTS sandbox.faults (
    id        bigint           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    system    text             NOT NULL,
    method    text             NOT NULL,
    path      text             NOT NULL,
    key       text             NOT NULL,
    object    text             NOT NULL,
    rate      double precision NOT NULL,
    remaining integer,                               -- null: until cleared
    fault     text             NOT NULL              -- the fault as JSON
);

-- The customer file.
CREATE TABLE IF NOT EXISTS sandbox.customers (
    id        text   PRIMARY KEY,
    name      text   NOT NULL,
    keeper_id text   NOT NULL,
    version   bigint NOT NULL DEFAULT 1
);

CREATE TABLE IF NOT EXISTS sandbox.conversations (
    id          text        PRIMARY KEY,
    customer_id text        NOT NULL REFERENCES sandbox.customers,
    channel     text        NOT NULL CHECK (channel IN ('phone', 'chat', 'visit')),
    at          timestamptz NOT NULL
);

-- Every note that was really saved; the key is not unique, as above.
CREATE TABLE IF NOT EXISTS sandbox.customer_notes (
    id              bigint      GENERATED ALWAYS AS IDENTITY (START WITH 9001) PRIMARY KEY,
    key             text        NOT NULL,
    customer_id     text        NOT NULL REFERENCES sandbox.customers,
    conversation_id text        NOT NULL REFERENCES sandbox.conversations,
    minutes         text        NOT NULL,
    actor           text,
    at              timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS customer_notes_key ON sandbox.customer_notes (key);
CREATE INDEX IF NOT EXISTS customer_notes_customer ON sandbox.customer_notes (customer_id, id);

-- What the service desk was asked for; the key is not unique, as above.
CREATE TABLE IF NOT EXISTS sandbox.service_requests (
    id          bigint      GENERATED ALWAYS AS IDENTITY (START WITH 3001) PRIMARY KEY,
    key         text        NOT NULL,
    customer_id text        NOT NULL,
    topic       text        NOT NULL,
    wish        text        NOT NULL,
    actor       text,
    status      text        NOT NULL DEFAULT 'received' CHECK (status IN ('received', 'queued', 'done', 'refused')),
    delivery    text        NOT NULL,             -- how it goes on, as JSON
    step_ms     integer     NOT NULL,
    trace       text        NOT NULL,             -- traceparent of the request; empty without one
    due_at      timestamptz,                      -- null: nothing more happens
    done_at     timestamptz,
    at          timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS service_requests_due ON sandbox.service_requests (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS service_requests_key ON sandbox.service_requests (key);
CREATE INDEX IF NOT EXISTS service_requests_customer ON sandbox.service_requests (customer_id, id);

CREATE OR REPLACE VIEW sandbox.service_effects AS SELECT key FROM sandbox.service_requests WHERE status <> 'refused';

-- The ledger. Amounts are in the smallest unit of their currency; a rate is what
-- one unit was worth in the currency of the reconciliations.
CREATE TABLE IF NOT EXISTS sandbox.ledger_currencies (
    currency    text    PRIMARY KEY,
    minor_units integer NOT NULL,
    rate        numeric NOT NULL CHECK (rate > 0)
);

CREATE TABLE IF NOT EXISTS sandbox.ledger_entries (
    voucher      text        PRIMARY KEY,
    account      text        NOT NULL,
    side         text        NOT NULL CHECK (side IN ('books', 'statement')),
    reference    text        NOT NULL,
    at           timestamptz NOT NULL,
    amount_minor bigint      NOT NULL,
    currency     text        NOT NULL REFERENCES sandbox.ledger_currencies,
    text         text        NOT NULL
);
CREATE INDEX IF NOT EXISTS ledger_entries_period ON sandbox.ledger_entries (account, at);

CREATE TABLE IF NOT EXISTS sandbox.reconciliations (
    id          text        PRIMARY KEY,
    account     text        NOT NULL,
    period_from date        NOT NULL,
    period_to   date        NOT NULL CHECK (period_to > period_from),
    currency    text        NOT NULL REFERENCES sandbox.ledger_currencies,
    status      text        NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'signed_off')),
    signed_by   text,
    signed_at   timestamptz CHECK ((signed_at IS NOT NULL) = (status = 'signed_off')),
    version     bigint      NOT NULL DEFAULT 1
);

CREATE TABLE IF NOT EXISTS sandbox.ledger_explanations (
    reconciliation_id text NOT NULL REFERENCES sandbox.reconciliations,
    reference         text NOT NULL,
    voucher           text NOT NULL REFERENCES sandbox.ledger_entries,
    explanation       text NOT NULL,
    PRIMARY KEY (reconciliation_id, reference)
);

CREATE TABLE IF NOT EXISTS sandbox.ledger_reports (
    id                text        PRIMARY KEY,
    reconciliation_id text        NOT NULL REFERENCES sandbox.reconciliations,
    version           bigint      NOT NULL,
    signed_off        boolean     NOT NULL,
    differences       integer     NOT NULL,
    actor             text,
    at                timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE IF NOT EXISTS sandbox.ledger_adjustments (
    reconciliation_id text        NOT NULL REFERENCES sandbox.reconciliations,
    reference         text        NOT NULL,
    voucher           text        NOT NULL REFERENCES sandbox.ledger_entries,
    amount_cents      bigint      NOT NULL,
    actor             text,
    at                timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (reconciliation_id, reference)
);

CREATE TABLE IF NOT EXISTS sandbox.ledger_rights (
    person_id text NOT NULL,
    "right"   text NOT NULL CHECK ("right" IN ('sign_off', 'report', 'post')),
    PRIMARY KEY (person_id, "right")
);
