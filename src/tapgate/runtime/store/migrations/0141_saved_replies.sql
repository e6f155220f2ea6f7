-- migration: expand
-- Texts that support staff insert into replies, and edit. `texts` has one text per language.
CREATE TABLE saved_replies (
    id bigint PRIMARY KEY,
    label text NOT NULL,                    -- what staff see
    texts jsonb NOT NULL CHECK (texts ? 'en'),
    position integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX saved_replies_label ON saved_replies (lower(label));

-- The replies that the console had until now. Their IDs are made as by the gateway: milliseconds
-- since 2025, slot, counter.
INSERT INTO saved_replies (id, label, texts, position, created_at, updated_at)
SELECT (((extract(epoch FROM now()) * 1000)::bigint - 1735689600000) << 22) + place, label,
       jsonb_build_object('en', english, 'fr', french), place, now(), now()
FROM (VALUES
    (1, 'Checking',
     'Thank you for your message. We are checking this and will write to you here.',
     'Merci pour votre message. Nous vérifions et vous répondrons ici.'),
    (2, 'Lost card',
     'Your lost card is blocked. Come to one of our agents with your phone: you get a code here, and the agent links a new card with it. Your money and your PIN stay the same.',
     E'Votre carte perdue est bloquée. Venez chez un agent avec votre téléphone\u00a0: vous recevrez un code ici, avec lequel il associera une nouvelle carte. Votre argent et votre code PIN restent les mêmes.'),
    (3, 'Wrong recipient',
     'Please send us the transfer number and the phone number you wanted to reach. We ask the recipient to return the money.',
     'Envoyez-nous le numéro du transfert et le numéro que vous vouliez joindre. Nous demandons au destinataire de rendre l''argent.'),
    (4, 'Never share your PIN',
     'Nobody from our team asks for your PIN or for a code. If someone did, change your PIN now: write CHANGE PIN.',
     E'Personne de notre équipe ne demande votre code PIN ni un code. Si quelqu''un l''a fait, changez-le maintenant\u00a0: écrivez CHANGER PIN.'),
    (5, 'Solved',
     'This is solved now. Thank you for your patience. Write to us again at any time.',
     'C''est résolu. Merci de votre patience. Écrivez-nous à tout moment.')
) AS reply (place, label, english, french);
