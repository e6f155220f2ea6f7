INSERT INTO chat_turns VALUES
    (901, 101, 'messaging', 'text', 'balance', 'answered', NULL, 1),
    (902, 101, 'messaging', 'form', 'send', 'declined', 'INSUFFICIENT_FUNDS', 1),
    (903, 101, 'bridge', 'image', NULL, 'failed', NULL, 0);
INSERT INTO messenger.turns VALUES
    (904, '+23276000001', 'messaging', 'option', 'cards', 'in_progress', NULL, 1,
     '2026-01-01T00:00Z', '2026-01-01T00:00Z');
