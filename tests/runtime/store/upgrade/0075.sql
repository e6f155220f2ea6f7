INSERT INTO request_logs VALUES
    (831, 41, 'api_key', 'Online store', 'GET', '/api/v1/cards/{serial}', '/api/v1/cards/TAP-000001',
     NULL, 404, 'CARD_NOT_FOUND', 1250, 'a-1', '192.0.2.1', NULL, '{"code":"CARD_NOT_FOUND"}');
