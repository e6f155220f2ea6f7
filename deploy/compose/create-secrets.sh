#!/bin/sh
# Create the secrets of compose.yaml in ./secrets. Existing files are kept.
# Store a copy of secrets/secret_key elsewhere: without it, the database and its backups are useless.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
# Containers read the files with their own user IDs; the folder keeps other users of the host out.
chmod 0700 secrets
umask 0022

random() { openssl rand -hex 32; }
save() {
    [ -s "secrets/$1" ] || printf '%s\n' "$2" >"secrets/$1"
}

for name in admin_password cache_password database_password jwt_secret messenger_verify_token \
    metrics_token postgres_password secret_key; do
    save "$name" "$(random)"
done
save database_url "postgresql://tapgate:$(cat secrets/database_password)@postgres:5432/tapgate"
save service_secrets "{\"messenger\": \"$(random)\", \"gateway\": \"$(random)\"}"
save cache_url "redis://:$(cat secrets/cache_password)@valkey:6379/0"
save valkey_conf "requirepass $(cat secrets/cache_password)
save \"\"
appendonly no
maxmemory 256mb
maxmemory-policy allkeys-lru"
echo "The secrets are in $(pwd)/secrets."
