-- Language of messages to a subscriber, and the queue of KYC reviews.
ALTER TABLE subscribers
    ADD language text NOT NULL DEFAULT 'en' CHECK (language IN ('en', 'fr')),
    ADD kyc_pending_since timestamptz;      -- null: the subscriber does not wait for a decision

-- The language that a person last chose in the chat.
UPDATE subscribers s SET language = chosen.language
FROM (SELECT DISTINCT ON (phone_number) phone_number, language
      FROM (SELECT CASE WHEN address LIKE '+%' THEN address ELSE phone END AS phone_number,
                   language, updated_at
            FROM messenger.people WHERE language IS NOT NULL AND trusted) AS people
      ORDER BY phone_number, updated_at DESC) AS chosen
WHERE s.phone_number = chosen.phone_number;

UPDATE subscribers s SET kyc_pending_since = coalesce(
    (SELECT min(d.created_at) FROM kyc_documents d
     WHERE d.subscriber_id = s.id AND d.decided_at IS NULL), s.updated_at)
FROM accounts a
WHERE a.id = s.account_id AND a.status <> 'closed' AND s.kyc_status = 'PENDING';

CREATE INDEX subscribers_kyc_queue ON subscribers (kyc_pending_since, id)
    WHERE kyc_status = 'PENDING';
CREATE INDEX subscribers_by_kyc_status ON subscribers (kyc_status, id);

-- Whether a rejection covers the document. Rejected documents meet no requirement.
ALTER TABLE kyc_documents ADD rejected boolean NOT NULL DEFAULT false;
UPDATE kyc_documents d SET rejected = true
FROM subscribers s
WHERE s.id = d.subscriber_id AND s.kyc_status = 'REJECTED' AND d.decided_at IS NOT NULL;

-- When the chosen language is due to be stored at the gateway; null: it is stored.
ALTER TABLE messenger.people ADD language_due_at timestamptz;
CREATE INDEX people_language_due ON messenger.people (language_due_at)
    WHERE language_due_at IS NOT NULL;
