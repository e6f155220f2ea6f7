-- What lists are filtered by where few rows match: without these, a page would be looked for through
-- all of the table.
CREATE INDEX alerts_unresolved ON alerts (status, id) WHERE status IN ('open', 'investigating');
CREATE INDEX alerts_severity ON alerts (severity, id);
CREATE INDEX cards_expiring ON cards (expires_at) WHERE status <> 'LOST';
CREATE INDEX audit_unsuccessful ON audit_entries (result, sequence) WHERE result <> 'success';
CREATE INDEX agents_parent ON agents (parent_agent_id) WHERE parent_agent_id IS NOT NULL;
