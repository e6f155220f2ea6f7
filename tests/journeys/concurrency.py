"""Concurrent requests distributed over several processes, and their outcomes."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import httpx2

from journeys.api_caller import require_error

Client = httpx2.AsyncClient
PendingResponse = Coroutine[Any, Any, httpx2.Response]
SendRequest = Callable[[Client], PendingResponse]


async def send_round_robin(
    clients: Sequence[Client], *requests: SendRequest
) -> list[httpx2.Response]:
    """Send all requests concurrently, alternating between the clients."""
    assignments = zip(requests, itertools.cycle(clients), strict=False)
    return await asyncio.gather(*(request(client) for request, client in assignments))


def count_outcomes(responses: Sequence[httpx2.Response]) -> Counter[Any]:
    """Count the responses by outcome: 200 for any success, else status and error code."""
    return Counter(
        200 if response.is_success else require_error(response) for response in responses
    )
