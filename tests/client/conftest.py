import pytest

from client.builders import ClientFactory
from harness import Harness
from tapgate.edge.services import Services


@pytest.fixture
def stage(services: Services, world: Harness) -> ClientFactory:
    return ClientFactory(services, world)
