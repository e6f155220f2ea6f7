UPDATE admins SET language = 'fr' WHERE id = 702;
