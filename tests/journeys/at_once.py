"""Many requests at once, in turns to each of several processes, and what was said."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import httpx2

from journeys.caller import refused

Line = httpx2.AsyncClient
Asked = Coroutine[Any, Any, httpx2.Response]
Request = Callable[[Line], Asked]


async def in_turns(lines: Sequence[Line], *requests: Request) -> list[httpx2.Response]:
    """Every other one of them is asked of the other process."""
    turns = zip(requests, itertools.cycle(lines), strict=False)
    return await asyncio.gather(*(request(line) for request, line in turns))


def said(answers: Sequence[httpx2.Response]) -> Counter[Any]:
    """How often each was said."""
    return Counter(200 if answer.is_success else refused(answer) for answer in answers)
