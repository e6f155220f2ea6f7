-- Requests of customers to talk to a person, and the messages of both sides.
CREATE TABLE support_requests (
    id bigint PRIMARY KEY,
    phone_number text NOT NULL,
    subscriber_id bigint REFERENCES subscribers,
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'answered', 'closed')),
    assignee bigint REFERENCES admins,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
-- One request per phone that is not closed. Parallel messages append to it.
CREATE UNIQUE INDEX support_requests_unclosed ON support_requests (phone_number)
    WHERE status <> 'closed';
CREATE INDEX support_requests_by_status ON support_requests (status, id);
CREATE INDEX support_requests_by_phone ON support_requests (phone_number, id);
CREATE INDEX support_requests_by_subscriber ON support_requests (subscriber_id, id);
CREATE INDEX support_requests_by_assignee ON support_requests (assignee, id);
CREATE INDEX support_requests_by_age ON support_requests (updated_at) WHERE status <> 'open';

CREATE TABLE support_messages (
    request_id bigint REFERENCES support_requests ON DELETE CASCADE,
    number integer,                             -- 1, 2, ... within the request
    sender text NOT NULL CHECK (sender IN ('customer', 'staff')),
    sealed bytea NOT NULL,                      -- the text, sealed by the vault
    created_at timestamptz NOT NULL,
    PRIMARY KEY (request_id, number)
);

-- Whether the person has a support request, as far as the messenger knows, and was told that
-- further texts are passed on.
ALTER TABLE messenger.people
    ADD support text CHECK (support IN ('open', 'told'));
-- The last messages of the conversation, sealed by the vault, for a support request.
ALTER TABLE messenger.conversations ADD transcript bytea;
CREATE INDEX conversations_with_transcript ON messenger.conversations (expires_at)
    WHERE transcript IS NOT NULL;
