-- migration: expand
-- How the platform presents itself to customers and staff. The table has at most one row; a value
-- that is NULL has its default.
CREATE TABLE branding (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    name text,
    color text,
    support_contact text,
    statement_header text,
    logo bytea,
    updated_at timestamptz NOT NULL
);

-- How an admin sees the console. NULL is the setting of the browser.
ALTER TABLE admins ADD theme text, ADD timezone text;
