UPDATE book_transfers SET refused_since = '2026-03-10', status = 'stopped' WHERE id = -2;
