-- migration: expand
-- Who holds the secret of an API key: the admin who created it, and those who have rotated it.
ALTER TABLE api_keys ADD rotated_by bigint[] NOT NULL DEFAULT '{}';     -- oldest first
-- Keys of the command line, until a rotation replaces their secret.
ALTER TABLE api_keys ADD has_unknown_holder boolean NOT NULL DEFAULT false;

-- People besides the maker who hold the API key that made the request. They cannot approve it.
ALTER TABLE approvals ADD other_makers text[] NOT NULL DEFAULT '{}';

-- Identities with which admins signed in until their password was reset, so that the same person
-- does not get a second account.
CREATE TABLE admin_former_identities (
    issuer text NOT NULL,
    subject text NOT NULL,
    admin_id bigint NOT NULL REFERENCES admins (id),
    PRIMARY KEY (issuer, subject)
);
