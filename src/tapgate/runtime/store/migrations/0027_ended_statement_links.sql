-- Statement links end when their subscriber becomes restricted; those that outlived an earlier
-- restriction end now.
DELETE FROM statements USING subscribers
WHERE subscribers.id = statements.subscriber_id AND subscribers.restricted;
