-- One-time codes also reset the PINs of agents and child cards. `subscriber_id` is the ID of the
-- PIN's holder, as in `pins`: a subscriber, card or agent. It keeps its name, so that processes of
-- the previous version work during a rolling upgrade.
ALTER TABLE one_time_codes DROP CONSTRAINT one_time_codes_subscriber_id_fkey;

-- To find agents by part of their address.
CREATE INDEX agents_address ON agents USING gin (trigrams(lower(address)));
