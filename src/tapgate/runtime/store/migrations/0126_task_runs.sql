-- migration: expand
-- The latest run of each task that the operator schedules, such as a backup, for alerts.
CREATE TABLE task_runs (
    task text PRIMARY KEY,
    ended_at timestamptz NOT NULL,
    succeeded boolean NOT NULL,
    succeeded_at timestamptz                -- the latest run that succeeded; null: none
);
