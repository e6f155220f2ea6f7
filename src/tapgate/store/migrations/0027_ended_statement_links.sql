-- Statement links end when their subscriber becomes restricted; those that outlived an earlier
-- restriction end now.
CREATE INDEX statements_of_subscriber ON statements (subscriber_id);
DELETE FROM statements USING subscribers
WHERE subscribers.id = statements.subscriber_id AND subscribers.restricted;
