"""The docs page is served entirely by the gateway under a strict content security policy."""

import re

import pytest

from api.builders import EdgeApp

FILES = ["start.js", "swagger-ui-bundle.js", "swagger-ui.css"]


async def test_docs_page_uses_only_its_own_files(gateway: EdgeApp) -> None:
    page = await gateway.client.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    links = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert sorted(links) == sorted(["data:,", *(f"docs/{name}" for name in FILES)])
    for name in FILES:
        assert (await gateway.client.get(f"/docs/{name}")).status_code == 200


async def test_docs_page_has_no_inline_scripts(gateway: EdgeApp) -> None:
    page = await gateway.client.get("/docs")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self';" in policy
    assert "unsafe" not in policy
    assert re.findall(r"<script[^>]*>([^<]+)<", page.text) == []
    assert page.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/docs", *(f"/docs/{name}" for name in FILES)])
async def test_docs_files_are_revalidated_by_etag(gateway: EdgeApp, path: str) -> None:
    first = await gateway.client.get(path)
    again = await gateway.client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    other = await gateway.client.get(path, headers={"If-None-Match": '"other"'})
    assert other.content == first.content
