-- migration: expand
-- Requests of admins that other admins approve before they are executed.
CREATE TABLE approval_rules (
    id bigint PRIMARY KEY,
    operation text NOT NULL,
    above bigint CHECK (above >= 0),        -- null: holds every request
    roles text[] NOT NULL,
    approvers smallint NOT NULL CHECK (approvers BETWEEN 1 AND 2),
    expires_in integer NOT NULL CHECK (expires_in BETWEEN 60 AND 604800)
);

CREATE TABLE approvals (
    id bigint PRIMARY KEY,
    operation text NOT NULL,
    operations text[] NOT NULL,             -- whose sums of 24 hours include the amount
    summary text NOT NULL,
    changes jsonb NOT NULL,
    amount bigint,
    resource_id text,
    sealed_request bytea NOT NULL,          -- without PINs and passwords
    maker_id bigint NOT NULL REFERENCES admins (id),
    maker_person text NOT NULL,
    request_key text,                       -- idempotency key of the held request
    fingerprint bytea,
    roles text[] NOT NULL,
    required_approvers smallint NOT NULL,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN (
        'pending', 'approved', 'executed', 'failed', 'rejected', 'cancelled', 'expired')),
    code text,
    result jsonb,
    sealed_result bytea,                    -- with secrets, until the maker has read it
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX approvals_request_key ON approvals (maker_id, request_key)
    WHERE request_key IS NOT NULL;
CREATE INDEX approvals_open ON approvals (status, id) WHERE status IN ('pending', 'approved');
CREATE INDEX approvals_maker_person ON approvals (maker_person, updated_at);
CREATE INDEX approvals_resource ON approvals (resource_id, id) WHERE resource_id IS NOT NULL;

CREATE TABLE approval_decisions (
    approval_id bigint NOT NULL REFERENCES approvals (id),
    admin_id bigint NOT NULL REFERENCES admins (id),
    person text NOT NULL,
    decision text NOT NULL CHECK (decision IN ('approve', 'reject')),
    reason text,
    decided_at timestamptz NOT NULL,
    PRIMARY KEY (approval_id, admin_id)
);

-- Requests with an amount that no rule held, for the sums of 24 hours. A row is written before the
-- request is executed.
CREATE TABLE guarded_calls (
    id bigint PRIMARY KEY,
    person text NOT NULL,
    operations text[] NOT NULL,
    amount bigint NOT NULL,
    request_key text,
    fingerprint bytea,
    created_at timestamptz NOT NULL
);
CREATE INDEX guarded_calls_person ON guarded_calls (person, created_at);
CREATE INDEX guarded_calls_created_at ON guarded_calls (created_at);
