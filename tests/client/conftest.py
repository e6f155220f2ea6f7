import pytest

from drivers.in_process import ClientFactory
from harness import Harness
from tapgate.http.api.services import Services


@pytest.fixture
def client_factory(services: Services, harness: Harness) -> ClientFactory:
    return ClientFactory(services, harness)
