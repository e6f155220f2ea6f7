#!/bin/bash
# Run by the image of PostgreSQL when it creates its data folder: the owner and the database.
# The owner is no superuser; pg_monitor lets it read the state of standbys.
set -euo pipefail
password=$(cat /run/secrets/database_password)
psql --set ON_ERROR_STOP=1 --set password="$password" --username "${POSTGRES_USER:-postgres}" <<'SQL'
CREATE ROLE tapgate LOGIN PASSWORD :'password';
GRANT pg_monitor TO tapgate;
CREATE DATABASE tapgate OWNER tapgate;
SQL
