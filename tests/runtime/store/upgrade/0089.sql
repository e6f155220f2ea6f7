INSERT INTO admin_former_identities
SELECT 'https://login.example.com', '00u0', min(id) FROM admins;
