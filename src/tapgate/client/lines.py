"""How operations reach the gateway: by a call that waits, or by one that is awaited.

Requests go to the transport itself. httpx2's own client would log their addresses, which may hold a
phone number or a token, and follow cookies and environment variables that nobody asked for.
"""

import asyncio
import threading
import time
from typing import TypeVar

import httpx2

from tapgate.client.exchange import Exchange, Outcome, Pause, Renew, Step, Steps
from tapgate.client.operation import Listing, Operation
from tapgate.client.pages import AsyncPages, Pages

T = TypeVar("T")


class SyncLine:
    """May be used by several threads at once."""

    def __init__(self, exchange: Exchange, http: httpx2.BaseTransport | None) -> None:
        self._exchange = exchange
        self._http = http or httpx2.HTTPTransport()
        self._renewing = threading.Lock()

    def call(self, operation: Operation[T], /) -> T:
        return self._run(self._exchange.steps(operation))

    def walk(self, listing: Listing[T], /) -> Pages[T]:
        return Pages(self, listing)

    def close(self) -> None:
        self._http.close()

    def _run(self, steps: Steps[T]) -> T:
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                answer: T = end.value
                return answer
            outcome = self._do(step)

    def _do(self, step: Step) -> Outcome:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        if isinstance(step, Renew):
            with self._renewing:
                self._run(self._exchange.renewal(step.tokens))
            return None
        try:
            response = self._http.handle_request(step)
            try:
                response.read()
            finally:
                response.close()
        except httpx2.RequestError as error:
            return error
        return response


class AsyncLine:
    """Belongs to one event loop; may be used by several tasks at once."""

    def __init__(self, exchange: Exchange, http: httpx2.AsyncBaseTransport | None) -> None:
        self._exchange = exchange
        self._http = http or httpx2.AsyncHTTPTransport()
        self._renewing = asyncio.Lock()

    async def call(self, operation: Operation[T], /) -> T:
        return await self._run(self._exchange.steps(operation))

    def walk(self, listing: Listing[T], /) -> AsyncPages[T]:
        return AsyncPages(self, listing)

    async def close(self) -> None:
        await self._http.aclose()

    async def _run(self, steps: Steps[T]) -> T:
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                answer: T = end.value
                return answer
            outcome = await self._do(step)

    async def _do(self, step: Step) -> Outcome:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        if isinstance(step, Renew):
            async with self._renewing:
                await self._run(self._exchange.renewal(step.tokens))
            return None
        try:
            response = await self._http.handle_async_request(step)
            try:
                await response.aread()
            finally:
                await response.aclose()
        except httpx2.RequestError as error:
            return error
        return response
