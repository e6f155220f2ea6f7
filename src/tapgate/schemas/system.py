"""Health of the gateway."""

import msgspec


class WalletCore(msgspec.Struct):
    healthy: bool
    version: str


class Health(msgspec.Struct):
    service: str
    version: str
    healthy: bool
    wallet_core: WalletCore
