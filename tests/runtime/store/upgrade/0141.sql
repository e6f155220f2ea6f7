INSERT INTO saved_replies VALUES
    (3601, 'Opening hours', '{"en": "We answer from 8 to 18.", "fr": "Nous répondons de 8 h à 18 h."}',
     6, '2026-03-10', '2026-03-10'),
    (3602, 'Only English', '{"en": "Please call us.", "fr": null}', 7, '2026-03-10', '2026-03-10');
