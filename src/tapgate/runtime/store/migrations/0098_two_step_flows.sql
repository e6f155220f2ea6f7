-- migration: expand
-- What the second step of a flow is bound to. A pending secret without a session cannot be confirmed.
ALTER TABLE admin_totp
    ADD pending_session_id bigint,
    ADD pending_since timestamptz;

-- When keys that no tap has confirmed yet were last issued.
ALTER TABLE cards ADD pending_since timestamptz;
