"""Prometheus metric for the expiry of the certificates that the gateway depends on.

The public certificate belongs to the proxy, and is read as a client sees it. It is not verified: an
expired certificate must be reported too.
"""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography import x509
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tapgate.core.settings import Settings
from tapgate.runtime.cached_result import CachedResult
from tapgate.runtime.store.database import Database
from tapgate_client.errors import ApiError

_MAX_AGE_SECONDS: Final = 3600.0
_TIMEOUT_SECONDS: Final = 2.0
_HTTPS_PORT: Final = 443


class CertificateMetrics:
    """Collects the time until the certificates of the public URL and of the database expire."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._url = urlsplit(settings.public_url)
        self._database = database
        self._expiries: CachedResult[dict[str, float]] = CachedResult(self._read, _MAX_AGE_SECONDS)

    async def update(self) -> None:
        await self._expiries.get()

    def collect(self) -> Iterator[Metric]:
        metric = GaugeMetricFamily(
            "tapgate_certificate_expiry_seconds",
            "Time until a certificate expires: of the public URL, and of the database server",
            labels=["certificate"],
        )
        for name, expires_at in (self._expiries.latest or {}).items():
            metric.add_metric([name], expires_at - time.time())
        yield metric

    async def _read(self) -> dict[str, float]:
        found = {"public": await self._read_public(), "database": await self._read_database()}
        return {name: expires_at for name, expires_at in found.items() if expires_at is not None}

    async def _read_public(self) -> float | None:
        host = self._url.hostname
        if self._url.scheme != "https" or host is None:
            return None
        try:
            return await asyncio.to_thread(
                read_certificate_expiry, host, self._url.port or _HTTPS_PORT
            )
        except OSError:  # also TLS errors: the proxy is not reachable from here
            return None

    async def _read_database(self) -> float | None:
        with contextlib.suppress(ApiError):
            async with self._database.connection() as connection:
                internals: Any = connection
                tls = internals._transport.get_extra_info("ssl_object")
                certificate = None if tls is None else tls.getpeercert(binary_form=True)
                return None if certificate is None else _parse_expiry(certificate)
        return None


def read_certificate_expiry(host: str, port: int) -> float:
    """Return when a server's certificate expires, as a Unix time. Blocks for some seconds."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((host, port), timeout=_TIMEOUT_SECONDS) as connection,
        context.wrap_socket(connection, server_hostname=host) as tls,
    ):
        certificate = tls.getpeercert(binary_form=True)
    assert certificate is not None
    return _parse_expiry(certificate)


def _parse_expiry(certificate: bytes) -> float:
    return x509.load_der_x509_certificate(certificate).not_valid_after_utc.timestamp()
