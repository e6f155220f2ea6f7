"""The interface description of the whole gateway."""

import httpx2
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tapgate.errors import TABLE
from tapgate.gateway import NOUNS


@pytest.fixture
async def document(client: httpx2.AsyncClient) -> dict[str, object]:
    found: dict[str, object] = (await client.get("/openapi.json")).json()
    return found


async def test_it_validates_and_describes_every_endpoint(document: dict[str, object]) -> None:
    OpenAPIV31SpecValidator(document).validate()
    paths = document["paths"]
    assert isinstance(paths, dict)
    for endpoint in (endpoint for noun in NOUNS for endpoint in noun):
        operation = paths[endpoint.path][endpoint.method.lower()]
        assert operation["summary"]
        assert str(endpoint.status) in operation["responses"]
        for code in endpoint.errors:
            assert str(TABLE[code][0]) in operation["responses"], (endpoint.path, code)


async def test_health_has_one_form_whether_well_or_not(document: dict[str, object]) -> None:
    paths = document["paths"]
    assert isinstance(paths, dict)
    responses = paths["/health"]["get"]["responses"]
    assert responses["503"]["content"] == responses["200"]["content"]
