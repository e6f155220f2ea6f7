-- migration: expand
-- Admins who have seen the link with which another admin sets a password. They may be one person,
-- until a third admin has confirmed the account.
CREATE TABLE admin_link_views (
    admin_id bigint NOT NULL REFERENCES admins (id),
    viewer_id bigint NOT NULL REFERENCES admins (id),
    seen_at timestamptz NOT NULL,
    confirmed_at timestamptz,
    confirmed_by bigint REFERENCES admins (id),     -- null: on the command line
    PRIMARY KEY (admin_id, viewer_id)
);
CREATE INDEX admin_link_views_open ON admin_link_views (admin_id) WHERE confirmed_at IS NULL;

-- The admin with whose approval the request was executed. Null for earlier requests.
ALTER TABLE approvals ADD executed_by bigint;
-- The admin who receives the secrets in the result. Null for results of the previous release.
ALTER TABLE approvals ADD result_for bigint;
