"""Unsupported methods: each returns 405 with the supported methods in Allow."""

from collections.abc import AsyncIterator, Mapping

import httpx2

from fuzz.connection_pool import ConnectionPool
from fuzz.openapi import Document, list_paths

_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND")


async def find_wrong_responses(
    documents: Mapping[str, Document], lines: Mapping[str, ConnectionPool]
) -> AsyncIterator[str]:
    for service, document in documents.items():
        for path, declared in list_paths(document):
            allowed = declared | ({"HEAD"} if "GET" in declared else set())
            for method in (item for item in _METHODS if item not in declared):
                url = lines[service].address + path.replace("{", "").replace("}", "")
                response = await lines[service].send(httpx2.Request(method, url))
                named = set(response.headers.get("allow", "").split(", "))
                if response.status_code != 405 or named != allowed:
                    yield f"{method} {path}: {response.status_code}, Allow: {named}"
