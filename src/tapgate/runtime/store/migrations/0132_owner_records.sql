-- migration: expand
-- Webhook endpoints, logged requests and statement files of a processor, partner or agent.
ALTER TABLE webhook_endpoints ADD owner_type text, ADD owner_id bigint;
CREATE INDEX webhook_endpoints_owner ON webhook_endpoints (owner_id, id)
    WHERE owner_id IS NOT NULL;
ALTER TABLE request_logs ADD owner_id bigint;
ALTER TABLE statements ADD owner_id bigint, ALTER subscriber_id DROP NOT NULL;
