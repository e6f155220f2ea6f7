"""Unsupported methods: each returns 405 with the supported methods in Allow."""

from collections.abc import AsyncIterator, Mapping

import httpx2

from fuzz.connection_pool import ConnectionPool
from fuzz.openapi import Document, list_paths

_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND")


async def find_wrong_responses(
    documents: Mapping[str, Document], pools: Mapping[str, ConnectionPool]
) -> AsyncIterator[str]:
    for service, document in documents.items():
        for path, declared in list_paths(document):
            allowed = declared | ({"HEAD"} if "GET" in declared else set())
            for method in (item for item in _METHODS if item not in declared):
                url = pools[service].address + path.replace("{", "").replace("}", "")
                response = await pools[service].send(httpx2.Request(method, url))
                allow_header = set(response.headers.get("allow", "").split(", "))
                if response.status_code != 405 or allow_header != allowed:
                    yield f"{method} {path}: {response.status_code}, Allow: {allow_header}"
