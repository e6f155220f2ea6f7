"""Gateway health records."""

from tapgate.client.records.base import Record


class WalletCore(Record, frozen=True, kw_only=True):
    """Health of the ledger."""

    healthy: bool
    version: str


class Health(Record, frozen=True, kw_only=True):
    service: str
    version: str
    healthy: bool
    wallet_core: WalletCore
