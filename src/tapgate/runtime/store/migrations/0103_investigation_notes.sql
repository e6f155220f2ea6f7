-- migration: expand
-- Notes on an alert under investigation, one per line. Earlier notes are only in the audit log.
ALTER TABLE alerts ADD COLUMN investigation_notes text;
