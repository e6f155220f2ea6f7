INSERT INTO notices VALUES (1003, 'payment_released', 201), (1003, 'payment_released', 202),
    (1003, 'payment_rejected', 301), (1003, 'float_low', 301);
