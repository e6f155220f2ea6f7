-- migration: expand
-- Which releases can use the schema: the oldest that may run after each migration.
ALTER TABLE schema_migrations
    ADD requires text,  -- number of the newest migration that a process must know; null: any
    ADD release text;   -- version of Tapgate that applied it
-- Number of the newest migration that the node knows; null: older than this column.
ALTER TABLE nodes ADD newest_migration text;
