-- Running nodes of the services. A node that stops is removed; one that dies expires.
CREATE TABLE nodes (
    id text NOT NULL,
    role text NOT NULL CHECK (role IN ('gateway', 'messenger')),
    host text NOT NULL,
    port integer NOT NULL,
    version text NOT NULL,
    settings jsonb NOT NULL,          -- a keyed hash for each setting that must agree
    problems text[] NOT NULL,         -- reasons why the node is not ready
    clock_offset double precision,    -- seconds ahead of the database; null if unknown
    started_at timestamptz NOT NULL,
    last_seen timestamptz NOT NULL,   -- by the clock of the database
    PRIMARY KEY (id, role)
);
