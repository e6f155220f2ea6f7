-- migration: expand
-- Language in which an admin sees the console. NULL is the setting of the browser.
ALTER TABLE admins ADD language text;
