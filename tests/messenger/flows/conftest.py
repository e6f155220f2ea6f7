import pytest

from builders.messenger import FlowDriver
from tapgate.runtime.store.database import Database


@pytest.fixture
def flow_driver(database: Database) -> FlowDriver:
    return FlowDriver(database)
