-- migration: expand
-- Users, API keys and webhook endpoints that belong to a processor, partner or agent. The earlier
-- roles belong to the platform.
ALTER TABLE admins
    DROP CONSTRAINT admins_role_check,
    ADD owner_type text,
    ADD owner_id bigint,
    ADD CONSTRAINT admins_role_check CHECK (
        role IN ('system_admin', 'compliance_user', 'support_user', 'finance_user',
                 'merchant_manager', 'merchant_cashier', 'partner_user', 'agent_user')
        AND (owner_id IS NOT NULL) = (owner_type IS NOT NULL)
        AND owner_type IS NOT DISTINCT FROM CASE role
            WHEN 'merchant_manager' THEN 'processor' WHEN 'merchant_cashier' THEN 'processor'
            WHEN 'partner_user' THEN 'partner' WHEN 'agent_user' THEN 'agent' END) NOT VALID;
CREATE INDEX admins_owner ON admins (owner_id, id) WHERE owner_id IS NOT NULL;
ALTER TABLE api_keys ADD owner_type text, ADD owner_id bigint;
