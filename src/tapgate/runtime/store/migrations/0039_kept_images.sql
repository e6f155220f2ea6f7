-- Images sent to the chat whose document type the person has not chosen yet.
CREATE TABLE messenger.images (
    id bigint PRIMARY KEY,
    address text NOT NULL,
    digest bytea NOT NULL,  -- keyed hash, so that an image is kept once
    media_type text NOT NULL CHECK (media_type IN ('image/jpeg', 'image/png')),
    sealed bytea NOT NULL,  -- by the vault
    expires_at timestamptz NOT NULL,
    UNIQUE (address, digest)
);
CREATE INDEX images_expiry ON messenger.images (expires_at);

-- The form for a one-time code and a new PIN.
ALTER TABLE messenger.forms
    DROP CONSTRAINT forms_form_check,
    ADD CONSTRAINT forms_form_check
        CHECK (form IN ('pin', 'new_pin', 'change_pin', 'reset_pin'));
