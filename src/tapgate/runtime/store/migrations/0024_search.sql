-- What agents, processors and partners are searched by, with the index that subscribers have: every
-- search reads an index, whatever it looks for. The name is the account's, so triggers copy it.
ALTER TABLE agents ADD COLUMN search_text text NOT NULL DEFAULT '';
ALTER TABLE processors ADD COLUMN search_text text NOT NULL DEFAULT '';
ALTER TABLE partners ADD COLUMN search_text text NOT NULL DEFAULT '';

CREATE FUNCTION holder_name_of(account bigint) RETURNS text LANGUAGE sql STABLE
RETURN (SELECT holder_name FROM accounts WHERE id = account);

CREATE FUNCTION set_agent_search_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.search_text := lower(concat_ws(' ', holder_name_of(NEW.account_id), NEW.business_name,
                                       NEW.phone_number));
    RETURN NEW;
END $$;
CREATE FUNCTION set_processor_search_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.search_text := lower(concat_ws(' ', holder_name_of(NEW.account_id), NEW.phone_number,
                                       NEW.email));
    RETURN NEW;
END $$;
CREATE FUNCTION set_partner_search_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.search_text := lower(holder_name_of(NEW.account_id));
    RETURN NEW;
END $$;
CREATE TRIGGER search_text_is_current BEFORE INSERT OR UPDATE ON agents
    FOR EACH ROW EXECUTE FUNCTION set_agent_search_text();
CREATE TRIGGER search_text_is_current BEFORE INSERT OR UPDATE ON processors
    FOR EACH ROW EXECUTE FUNCTION set_processor_search_text();
CREATE TRIGGER search_text_is_current BEFORE INSERT OR UPDATE ON partners
    FOR EACH ROW EXECUTE FUNCTION set_partner_search_text();

-- Fires only for statements that set the name; payments do not.
CREATE FUNCTION copy_holder_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE agents SET search_text = '' WHERE account_id = NEW.id;
    UPDATE processors SET search_text = '' WHERE account_id = NEW.id;
    UPDATE partners SET search_text = '' WHERE account_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER holder_name_is_searched AFTER UPDATE OF holder_name ON accounts
    FOR EACH ROW WHEN (NEW.holder_name IS DISTINCT FROM OLD.holder_name AND NEW.kind <> 'wallet')
    EXECUTE FUNCTION copy_holder_name();

UPDATE agents SET search_text = '';
UPDATE processors SET search_text = '';
UPDATE partners SET search_text = '';

CREATE INDEX agents_search ON agents USING gin (trigrams(search_text));
CREATE INDEX processors_search ON processors USING gin (trigrams(search_text));
CREATE INDEX partners_search ON partners USING gin (trigrams(search_text));

-- To count the files of a subscriber.
CREATE INDEX statements_subscriber ON statements (subscriber_id);

-- The one filter of the audit log that had no index.
CREATE INDEX audit_resource_type ON audit_entries (resource_type, sequence);
