"""Storage settings: database, replica, cache and data folder."""

from pathlib import Path
from typing import Final

from tapgate.core.settings.declaration import Match, OptionalSetting, Setting, SettingGroup
from tapgate.core.settings.value_types import FilePath, Flag, Integer, Url

#: Maximum connections to the database per process, and the smallest accepted value. A process must
#: have more connections for requests than expensive reads can use.
DEFAULT_DATABASE_CONNECTIONS: Final = 20
MIN_DATABASE_CONNECTIONS: Final = 12


class StorageSettings(SettingGroup):
    title = "Database and storage"

    database_url = OptionalSetting(
        Url("postgresql", "postgres"),
        "Database URL",
        "PostgreSQL 16 or newer, with [libpq parameters](running.md#url-parameters),"
        " directly or through [PgBouncer in session mode](running.md#pgbouncer). If unset, an"
        " embedded database in the data folder is used, and production warns.",
        french="URL de la base de données",
        production="Set it, with `sslmode=verify-full`. Percent-encode special characters in the"
        " password. With several servers, name all of them"
        " (`@db-1.internal,db-2.internal/tapgate`): Tapgate uses the server that accepts writes.",
        example="postgresql://tapgate:secret@db.internal/tapgate",
        template="",
    )
    database_connections = Setting(
        Integer(MIN_DATABASE_CONNECTIONS, 1000),
        DEFAULT_DATABASE_CONNECTIONS,
        "Max. database connections per process",
        "Maximum database connections per gateway process. A messenger process opens at most half"
        " as many. See [how many connections the server needs](running.md#connections).",
        french="Connexions max. à la base de données par processus",
        production="As many as the server can handle.",
        example="40",
        suggested=True,
    )
    database_replica_url = OptionalSetting(
        Url("postgresql", "postgres"),
        "Report replica URL",
        "Standby database from which reports read. If unset, reports read from the primary. See"
        " [Reports](running.md#reports).",
        french="URL du réplica pour les rapports",
        production="Set it if there is a standby.",
        example="postgresql://tapgate:secret@standby.internal/tapgate",
        suggested=True,
    )
    replica_max_lag = Setting(
        Integer(1, 60),
        2,
        "Max. replica lag (s)",
        "Seconds that a report waits until the standby has all changes. After that, the report"
        " reads from the primary.",
        french="Retard max. du réplica (s)",
        example="5",
    )
    require_sync_replication = Setting(
        Flag(),
        False,
        "Require synchronous replication",
        "Reject transactions with 503 while no synchronous standby confirms commits. See"
        " [Replication](high-availability.md#replication).",
        french="Réplication synchrone obligatoire",
        production="Set it to `on` if the database has a synchronous standby.",
        example="on",
        match=Match.WARN,
        suggested=True,
    )
    auto_migrate = Setting(
        Flag(),
        True,
        "Automatic migrations",
        "Apply pending [migrations](upgrading.md) at startup. With `off`, startup fails on a"
        " database that must be migrated, and says so.",
        french="Migrations automatiques",
        production="`off` if the nodes' database user may not create tables, or if an upgrade job"
        " runs `tapgate migrate`.",
        example="off",
    )
    cache_url = OptionalSetting(
        Url("redis", "rediss", "unix"),
        "Rate limit cache URL",
        "Valkey or Redis server (`redis://`, `rediss://`, `unix://`) that shares rate limits"
        " between nodes. If unset, limits apply per node. Limits are exact within"
        " [bounds](running.md#rate-limits-across-nodes). If the cache is unreachable, limits apply"
        " per node, and Tapgate prints a warning at startup.",
        french="URL du cache des limites de débit",
        production="Set it if you run several nodes.",
        example="redis://cache.internal:6379/0",
        match=Match.WARN,
        suggested=True,
    )
    data_dir = Setting(
        FilePath(),
        Path(".tapgate"),
        "Data folder",
        "Folder for the embedded database, generated files (`secrets.json`, `administrator.txt`,"
        " `demo.txt`, `forms.pem`) and counters shared by processes.",
        french="Dossier de données",
        production="On a persistent disk if you use the embedded database.",
        example="/var/lib/tapgate",
    )
    idempotency_key_days = Setting(
        Integer(0, 36_500),
        0,
        "Idempotency key retention (days)",
        "How long idempotency keys and partner references are kept, in days; `0`: forever. A"
        " request that is repeated later is a new request and moves money again.",
        french="Conservation des clés d'idempotence (jours)",
        production="`0`, or longer than any client, queue or partner repeats a request. See [Years"
        " of data](years.md#idempotency-keys).",
        example="400",
    )
