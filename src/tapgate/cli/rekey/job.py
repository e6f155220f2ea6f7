"""Key rotation steps that `tapgate rekey` runs."""

import contextlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final, NamedTuple

from tapgate.auth.actors import Actor
from tapgate.cli.rekey import sealed_values
from tapgate.cli.rekey.columns import SEALED_COLUMNS
from tapgate.cli.rekey.hashes import HASH_KINDS, OldKey, count_hashes, discard_hashes
from tapgate.cli.rekey.sealed_values import ProgressCallback
from tapgate.core.settings.fingerprint import list_secret_keys
from tapgate.events.audit import verification as audit_log
from tapgate.events.audit.trail import AuditTrail
from tapgate.http.api.services import Services
from tapgate.ledger.archive import archived
from tapgate.ledger.maintenance import partition_job
from tapgate.ledger.verification import checkpoints
from tapgate.runtime.exclusive_job import AlreadyRunningError, ExclusiveJob
from tapgate.runtime.nodes import list_nodes
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.installation import get_first_key_id, set_first_key_id
from tapgate.runtime.store.migrate import NODES_LOCK_KEY
from tapgate.runtime.store.transaction import Transaction

_LOCK_KEY: Final = 0x7467_726B  # "tgrk"
_job: Final = ExclusiveJob(_LOCK_KEY)
_trail: Final = AuditTrail("installation")


class Remaining(NamedTuple):
    """Data of one kind that needs an old key."""

    label: str
    total: int
    #: How it stops needing the key; None for data that a run moves.
    remedy: str | None = None
    expires_at: datetime | None = None


class KeyStatus(NamedTuple):
    key: OldKey
    remaining: list[Remaining]


class Rekey:
    """Moves data to the newest key, on one connection."""

    def __init__(self, services: Services, connection: Any) -> None:
        self._services = services
        self._vault = services.vault
        self._connection = connection

    async def list_status(self) -> list[KeyStatus]:
        """Return what still needs each key that is not the newest."""
        sealed = [
            (column.label, await sealed_values.count_by_key(self._connection, column))
            for column in SEALED_COLUMNS
        ]
        named = {key_id for _, counts in sealed for key_id in counts}
        status = []
        for key in await self._list_old_keys(named):
            remaining = [
                Remaining(label, counts[key.key_id])
                for label, counts in sealed
                if key.key_id in counts
            ]
            remaining += [*await self._list_derived(key), *await self._list_hashes(key)]
            status.append(KeyStatus(key, [part for part in remaining if part.total]))
        return status

    async def retire_old_keys(self) -> None:
        """Record that no node uses an old key for new data. Raise StoreError if one does."""
        async with self._services.transaction() as tx:
            await self._require_newest_everywhere(tx)
            await tx.execute(
                "UPDATE secret_keys SET retired_at = $2 WHERE key_id <> $1 AND retired_at IS NULL",
                self._vault.key_id,
                tx.now(),
            )

    async def move(self, report: ProgressCallback) -> list[str]:
        """Move everything that can be moved; return descriptions of unreadable values."""
        await sealed_values.store_own_keys(self._connection, self._vault)
        unreadable = await sealed_values.reseal_all(self._connection, self._vault, report)
        try:
            async with partition_job.acquire_connection(self._services.database) as connection:
                await checkpoints.renew_macs(connection, self._vault)
                await archived.renew_macs(connection, self._vault)
        except AlreadyRunningError:
            raise StoreError("`tapgate archive` is running. Run this command again later") from None
        await audit_log.renew_mac(self._connection, self._vault)
        return unreadable

    async def release(self, status: KeyStatus, actor: Actor) -> bool:
        """Release a key if no stored data needs it; return whether it was released."""
        if status.remaining:
            return False
        async with self._services.transaction() as tx:
            await self._require_newest_everywhere(tx)
            # A node that started with this key as its newest has registered it again.
            is_released = await tx.fetchval(
                "DELETE FROM secret_keys WHERE key_id = $1 AND retired_at IS NOT NULL"
                " RETURNING true",
                status.key.key_id,
            )
            if not is_released:
                return False
            if await get_first_key_id(tx) == status.key.key_id:
                await set_first_key_id(tx, self._vault.key_id)
            reason = f"key {status.key} by key {self._describe_newest()}"
            await _trail.record(tx, actor, None, "secret_key_replaced", reason=reason)
        return True

    async def discard(self, status: KeyStatus, actor: Actor) -> None:
        """Invalidate the hashes that only an old key can verify."""
        async with self._services.transaction() as tx:
            parameters = await self._list_parameters(status.key)
            for kind in HASH_KINDS:
                await discard_hashes(tx, kind, *parameters)
            reason = f"of key {status.key}"
            await _trail.record(tx, actor, None, "secret_key_hashes_discarded", reason=reason)

    async def _list_old_keys(self, named: set[str]) -> list[OldKey]:
        """Return the old keys that are registered, and further ones that sealed values name."""
        rows = await self._connection.fetch(
            "SELECT key_id, name, retired_at FROM secret_keys WHERE key_id <> $1 ORDER BY added_at",
            self._vault.key_id,
        )
        keys = [OldKey(*row) for row in rows]
        others = named - {self._vault.key_id} - {key.key_id for key in keys}
        return keys + [
            OldKey(key_id, self._vault.key_names.get(key_id, "unknown"), None)
            for key_id in sorted(others)
        ]

    async def _list_derived(self, key: OldKey) -> list[Remaining]:
        """Return data that needs the first key but does not name it: derived keys and MACs."""
        if key.key_id != await get_first_key_id(self._connection):
            return []
        connection, vault = self._connection, self._vault
        audit_mac = await audit_log.find_old_mac(connection, vault)
        return [
            Remaining("cards", await sealed_values.count_legacy_cards(connection)),
            Remaining("checkpoints", len(await checkpoints.find_old_macs(connection, vault))),
            Remaining("archived months", len(await archived.find_old_macs(connection, vault))),
            Remaining("checkpoint of the audit log", int(audit_mac is not None)),
        ]

    async def _list_hashes(self, key: OldKey) -> list[Remaining]:
        parameters = await self._list_parameters(key)
        remaining = []
        for kind in HASH_KINDS:
            count = await count_hashes(self._connection, kind, *parameters)
            remaining.append(Remaining(kind.label, count.total, kind.remedy, count.expires_at))
        return remaining

    async def _list_parameters(self, key: OldKey) -> tuple[object, ...]:
        first_key_id = await get_first_key_id(self._connection)
        return (
            key.key_id,
            self._vault.key_id,
            first_key_id,
            key.retired_at,
            self._services.clock(),
        )

    async def _require_newest_everywhere(self, tx: Transaction) -> None:
        """Raise StoreError if a node uses another key for new data. Keep nodes from joining."""
        await tx.execute("SELECT pg_advisory_xact_lock($1)", NODES_LOCK_KEY)
        for node in await list_nodes(tx):
            keys = list_secret_keys(node.settings) or [await get_first_key_id(tx)]
            if node.is_online and keys[0] != self._vault.key_id:
                raise StoreError(
                    f"the {node.role} {node.address} still uses key {keys[0]} for new data. Restart"
                    f" it with {self._describe_newest()} as the first key of TAPGATE_SECRET_KEY"
                )

    def _describe_newest(self) -> str:
        return f"{self._vault.key_names[self._vault.key_id]} ({self._vault.key_id})"


@contextlib.asynccontextmanager
async def open_rekey(services: Services) -> AsyncIterator[Rekey]:
    """Keep other runs out. Raise StoreError if there is one."""
    try:
        async with _job.acquire_connection(services.database) as connection:
            yield Rekey(services, connection)
    except AlreadyRunningError:
        raise StoreError("another process is running `tapgate rekey`") from None
