import pytest

from messenger.flows.stage import Stage
from tapgate.store.database import Database


@pytest.fixture
def stage(database: Database) -> Stage:
    return Stage(database)
