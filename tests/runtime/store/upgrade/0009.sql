INSERT INTO kyc_documents VALUES (1301, 202, 'id_front', 'image/jpeg',
                                  decode(repeat('5e', 10000), 'hex'), '2026-03-02');
