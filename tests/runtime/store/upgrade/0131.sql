UPDATE admins SET role = 'merchant_manager', owner_type = 'processor', owner_id = 401
WHERE id = (SELECT max(id) FROM admins);
UPDATE api_keys SET owner_type = 'processor', owner_id = 401 WHERE id = (SELECT min(id) FROM api_keys);
