import httpx2
import pytest

from tapgate.edge.services import Services
from world import World


@pytest.fixture
def world(services: Services, client: httpx2.AsyncClient) -> World:
    return World(services, client)
