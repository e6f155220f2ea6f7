"""Node states, read from Patroni, HTTP health checks and Valkey."""

import asyncio
from types import TracebackType
from typing import Any, Final, Self

import httpx2
import msgspec

from tools.cluster.configuration import HOST, build_url
from tools.cluster.layout import GATEWAYS, MESSENGERS, Layout

_TIMEOUT_SECONDS: Final = 1.0
LEADER: Final = "leader"
SYNC_STANDBY: Final = "quorum_standby"
_STREAMING_STATES: Final = ("running", "streaming")


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A PostgreSQL node as reported by Patroni."""

    name: str
    role: str
    state: str
    timeline: int | None = None
    lag: int | str | None = None


class _Members(msgspec.Struct):
    members: list[Member] = []


class StatusReader:
    """Reads node states; a node that does not respond is down."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._client = httpx2.AsyncClient(timeout=_TIMEOUT_SECONDS, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    async def list_members(self) -> list[Member]:
        """Return the members that Patroni knows, from the first node that responds."""
        for name in self._layout.size.list_names("postgres"):
            response = await self._get(f"{build_url(self._layout, f'{name} api')}/cluster")
            if response is not None and response.status_code == 200:
                return msgspec.json.decode(response.content, type=_Members).members
        return []

    async def find_leader(self) -> str | None:
        """Return the primary node's name, asking each node for its own role."""
        names = self._layout.size.list_names("postgres")
        urls = [f"{build_url(self._layout, f'{name} api')}/primary" for name in names]
        responses = await asyncio.gather(*map(self._get, urls))
        for name, response in zip(names, responses, strict=True):
            if response is not None and response.status_code == 200:
                return name
        return None

    async def is_replicating(self) -> bool:
        """Return whether there is a primary, and all other members replicate from it."""
        members = await self.list_members()
        if len(members) < self._layout.size.postgres:
            return False
        roles = {member.role for member in members}
        needed = {LEADER, SYNC_STANDBY} if len(members) > 1 else {LEADER}
        return needed <= roles and all(member.state in _STREAMING_STATES for member in members)

    async def is_serving(self) -> bool:
        """Return whether all Tapgate nodes, and HAProxy in front of them, serve requests."""
        size = self._layout.size
        names = [*size.list_names("gateway"), *size.list_names("messenger"), GATEWAYS, MESSENGERS]
        return all(await asyncio.gather(*map(self.is_healthy, names)))

    async def is_healthy(self, name: str) -> bool:
        """Return whether an etcd member is healthy, or another HTTP service is ready."""
        path = "/health" if name.startswith("etcd") else "/ready"
        response = await self._get(f"{build_url(self._layout, name)}{path}")
        return response is not None and response.status_code == 200

    async def is_listening(self, name: str) -> bool:
        """Return whether Valkey responds."""
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                reader, writer = await asyncio.open_connection(HOST, self._layout.ports[name])
                writer.write(b"PING\r\n")
                reply = await reader.readline()
                writer.close()
        except (OSError, TimeoutError):
            return False
        return reply.startswith(b"+PONG")

    async def _get(self, url: str) -> Any:
        try:
            return await self._client.get(url)
        except httpx2.HTTPError:
            return None
