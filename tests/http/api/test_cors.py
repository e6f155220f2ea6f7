"""Cross-origin requests of browser apps."""

from pathlib import Path

import httpx2
import pytest

from builders.http_apps import READER, build_bearer_headers, load_settings, run_edge_app
from tapgate.core.settings.declaration import SettingsError

ORIGIN = "https://app.example.com"
OTHERS = ["https://evil.example.com", "http://app.example.com", ORIGIN + ".evil.com", "null", ""]
SETTINGS = {"TAPGATE_CORS_ORIGINS": f"{ORIGIN}, http://localhost:3000"}


def list_cors_headers(response: httpx2.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if "access-control" in name}


def build_preflight(origin: str) -> dict[str, str]:
    return {"Origin": origin, "Access-Control-Request-Method": "POST"}


async def test_listed_origin_may_read_responses_and_errors(tmp_path: Path) -> None:
    async with run_edge_app(tmp_path, **SETTINGS) as gateway:
        for path, headers, status in (
            ("/api/v1/things/a", build_bearer_headers(READER), 200),
            ("/api/v1/things/a", {}, 401),
            ("/api/v1/unknown", {}, 404),
            ("/api/v1/fails", {}, 405),
        ):
            response = await gateway.client.get(path, headers={**headers, "Origin": ORIGIN})
            assert response.status_code == status
            assert response.headers["access-control-allow-origin"] == ORIGIN
            assert response.headers["vary"] == "Origin"
            exposed = response.headers["access-control-expose-headers"].split(", ")
            assert {"X-Request-ID", "Retry-After", "X-RateLimit-Remaining"} <= set(exposed)
            assert "access-control-allow-credentials" not in response.headers


async def test_preflight_of_a_listed_origin_is_accepted(tmp_path: Path) -> None:
    async with run_edge_app(tmp_path, **SETTINGS) as gateway:
        response = await gateway.client.options("/api/v1/things", headers=build_preflight(ORIGIN))
        assert (response.status_code, response.content) == (204, b"")
        assert "POST" in response.headers["access-control-allow-methods"]
        allowed = response.headers["access-control-allow-headers"]
        assert "Authorization" in allowed and "Idempotency-Key" in allowed
        unknown = await gateway.client.options("/api/v1/unknown", headers=build_preflight(ORIGIN))
        assert unknown.status_code == 404


@pytest.mark.parametrize("origin", OTHERS)
async def test_other_origins_get_no_permission(tmp_path: Path, origin: str) -> None:
    async with run_edge_app(tmp_path, **SETTINGS) as gateway:
        response = await gateway.client.get("/api/v1/open", headers={"Origin": origin})
        assert (list_cors_headers(response), response.headers["vary"]) == ({}, "Origin")
        response = await gateway.client.options("/api/v1/things", headers=build_preflight(origin))
        assert (response.status_code, list_cors_headers(response)) == (405, {})


async def test_without_the_setting_nothing_changes(tmp_path: Path) -> None:
    async with run_edge_app(tmp_path) as gateway:
        response = await gateway.client.get("/api/v1/open", headers={"Origin": ORIGIN})
        assert list_cors_headers(response) == {}
        assert "vary" not in response.headers
        response = await gateway.client.options("/api/v1/things", headers=build_preflight(ORIGIN))
        assert response.status_code == 405


@pytest.mark.parametrize(
    "origins", ["*", "app.example.com", "https://app.example.com/", "https://*.x"]
)
def test_invalid_origins_are_refused(tmp_path: Path, origins: str) -> None:
    with pytest.raises(SettingsError, match="TAPGATE_CORS_ORIGINS"):
        load_settings(tmp_path, TAPGATE_CORS_ORIGINS=origins)
