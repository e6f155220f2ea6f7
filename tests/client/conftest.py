import pytest

from client.stage import Stage
from tapgate.edge.services import Services
from world import World


@pytest.fixture
def stage(services: Services, world: World) -> Stage:
    return Stage(services, world)
