"""Benchmark of authentication and PIN checks: CPU time of each, in microseconds.

It uses no database. All keys are cached, as in production after the first request with a key.
Run with `python bench/auth.py`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from tapgate.auth.access_tokens import AccessTokens
from tapgate.auth.authenticator import Authenticator
from tapgate.core.id_generator import IdGenerator
from tapgate.core.vault import Vault
from tapgate.ledger.pins.pin_verifier import PinVerifier
from tapgate_client import ids, signing
from tapgate_client.clock import format_rfc3339, system_clock

ROUNDS = 20_000
PATH = "/api/v1/pos/payment"
BODY = b'{"request_id":"6f1f1c0e-7d5b-4a53-9d0a-3f6c1b2a4d5e","card_serial":"TG-0001",' + (
    b'"amount":"25.00","pin":"4831","merchant_name":"Corner Shop"}'
)
SECRET = "s" * 43
JWT_SECRET = "j" * 32


class NullSignals:
    """Signals that never fire."""

    is_listening = True

    def subscribe(self, topic: str, handler: object) -> None: ...
    def on_reconnect(self, handler: object) -> None: ...


class FakeDatabase:
    """Database that contains every signing key, API key and session."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def fetchrow(self, sql: str, key: Any) -> dict[str, Any]:
        sealed = self._vault.seal(SECRET.encode(), b"hmac_key %d" % key) if "hmac" in sql else b""
        return {
            "id": key if isinstance(key, int) else 1,
            "secret": sealed,
            "processor_id": 1,
            "terminal_id": None,
            "partner_id": None,
            "holder_name": "Corner Shop",
            "owner_status": "active",
            "terminal_status": None,
            "name": "Ada",
            "role": "system_admin",
            "scopes": ["payments:write"],
            "expires_at": None,
        }


def build_signed_headers(now: datetime) -> dict[bytes, bytes]:
    timestamp = format_rfc3339(now)
    return {
        b"host": b"localhost",
        b"content-type": b"application/json",
        b"x-api-key-id": ids.encode(ids.KEY, 1).encode(),
        b"x-timestamp": timestamp.encode(),
        b"x-signature": signing.sign(SECRET.encode(), "POST", PATH, timestamp, BODY).encode(),
    }


def build_service_headers(now: datetime) -> dict[bytes, bytes]:
    timestamp = str(int(now.timestamp()))
    signature = signing.sign_service(SECRET.encode(), "POST", PATH, b"", timestamp)
    return {
        b"x-service-name": b"messenger",
        b"x-service-timestamp": timestamp.encode(),
        b"x-service-signature": signature.encode(),
    }


def build_bearer_headers(credential: str) -> dict[bytes, bytes]:
    return {b"authorization": f"Bearer {credential}".encode()}


async def measure(name: str, operation: Callable[[], Awaitable[object]]) -> None:
    await operation()
    started = time.process_time()
    for _ in range(ROUNDS):
        await operation()
    print(f"{name:28} {(time.process_time() - started) / ROUNDS * 1e6:6.1f} µs")


async def main() -> None:
    vault, now = Vault("v" * 32), system_clock()
    # Only the settings that the authenticator reads.
    settings = SimpleNamespace(
        jwt_secret=JWT_SECRET, is_production=False, service_secrets={"messenger": SECRET}
    )
    fakes: dict[str, Any] = {
        "settings": settings,
        "database": FakeDatabase(vault),
        "signals": NullSignals(),
    }
    authenticator = Authenticator(**fakes, vault=vault, clock=system_clock, new_id=IdGenerator(0))
    token = AccessTokens(JWT_SECRET).issue(
        session_id=7, admin_id=7, email="ada@example.com", role="system_admin", now=now
    )
    requests = {
        "POS HMAC": build_signed_headers(now),
        "service signature": build_service_headers(now),
        "API key": build_bearer_headers("svc_test_" + "k" * 43),
        "access token": build_bearer_headers(token),
    }
    for name, headers in requests.items():
        await measure(
            name,
            lambda headers=headers: authenticator.authenticate("POST", PATH, b"", headers, BODY),  # type: ignore[misc]
        )
    pins = PinVerifier(vault)
    stored = pins.hash("4831")

    async def check_pin() -> bool:
        return bool(pins.matches(stored, "4831"))

    await measure("PIN", check_pin)


if __name__ == "__main__":
    asyncio.run(main())
