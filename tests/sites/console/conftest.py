"""Fixtures for console tests: signed-out and signed-in clients."""

import pytest

from builders.http_apps import log_capture
from drivers.console import ConsoleClient, ConsoleClients
from drivers.in_process import AppTransport
from harness import Harness
from tapgate_sandbox.gateway import create_app

__all__ = ["log_capture"]


@pytest.fixture
def console_clients(harness: Harness) -> ConsoleClients:
    app = create_app(harness.services)
    return ConsoleClients(harness, AppTransport(app))


@pytest.fixture
def signed_out_client(console_clients: ConsoleClients) -> ConsoleClient:
    return console_clients.create_signed_out()


@pytest.fixture
async def ada(console_clients: ConsoleClients) -> ConsoleClient:
    """Return a client signed in as a system_admin."""
    return await console_clients.create_signed_in("A")
