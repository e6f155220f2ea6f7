INSERT INTO notices VALUES (1003, 'money_received', 202), (1003, 'payment_made', 201);
