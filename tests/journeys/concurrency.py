"""Many requests at once, in turns to each of several processes, and what was said."""

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
    lines: Sequence[Client], *requests: SendRequest
) -> list[httpx2.Response]:
    """Every other one of them is asked of the other process."""
    turns = zip(requests, itertools.cycle(lines), strict=False)
    return await asyncio.gather(*(request(line) for request, line in turns))


def count_outcomes(answers: Sequence[httpx2.Response]) -> Counter[Any]:
    """How often each was said."""
    return Counter(200 if answer.is_success else require_error(answer) for answer in answers)
