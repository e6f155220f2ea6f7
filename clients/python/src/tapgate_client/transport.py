"""Synchronous and asynchronous transports.

Requests bypass httpx2's client and go directly to its HTTP transport. The client would log URLs,
which may contain a phone number or a token, and would apply cookies and environment variables.
"""

import asyncio
import threading
import time
from typing import TypeVar

import httpx2

from tapgate_client.operation import Operation
from tapgate_client.pagination import AsyncPaginator, Paginator
from tapgate_client.request_flow import Flow, FlowStep, RenewTokens, RequestFlow, Sleep, StepResult
from tapgate_client.schemas.pagination import Page
from tapgate_client.tls import get_tls_context_for

T = TypeVar("T")


class SyncTransport:
    """Blocking transport, safe for concurrent use by several threads."""

    def __init__(self, flow: RequestFlow, http: httpx2.BaseTransport | None) -> None:
        self.request_flow = flow
        self._http_transport = http or httpx2.HTTPTransport(
            verify=get_tls_context_for(flow.base_url, trust_env=True)
        )
        self._token_lock = threading.Lock()

    def send(self, operation: Operation[T], /) -> T:
        return self._run_flow(self.request_flow.run(operation))

    def paginate(self, operation: Operation[Page[T]], /) -> Paginator[T]:
        return Paginator(self.send, operation)

    def close(self) -> None:
        self._http_transport.close()

    def _run_flow(self, flow: Flow[T]) -> T:
        outcome: StepResult = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = self._perform(step)

    def _perform(self, step: FlowStep) -> StepResult:
        if isinstance(step, Sleep):
            time.sleep(step.seconds)
            return None
        if isinstance(step, RenewTokens):
            with self._token_lock:
                self._run_flow(self.request_flow.renew_tokens(step.tokens))
            return None
        try:
            response = self._http_transport.handle_request(step)
            try:
                response.read()
            finally:
                response.close()
        except httpx2.RequestError as error:
            return error
        return response


class AsyncTransport:
    """Asynchronous transport for one event loop, safe for concurrent use by its tasks."""

    def __init__(self, flow: RequestFlow, http: httpx2.AsyncBaseTransport | None) -> None:
        self.request_flow = flow
        self._http_transport = http or httpx2.AsyncHTTPTransport(
            verify=get_tls_context_for(flow.base_url, trust_env=True)
        )
        self._token_lock = asyncio.Lock()

    async def send(self, operation: Operation[T], /) -> T:
        return await self._run_flow(self.request_flow.run(operation))

    def paginate(self, operation: Operation[Page[T]], /) -> AsyncPaginator[T]:
        return AsyncPaginator(self.send, operation)

    async def close(self) -> None:
        await self._http_transport.aclose()

    async def _run_flow(self, flow: Flow[T]) -> T:
        outcome: StepResult = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = await self._perform(step)

    async def _perform(self, step: FlowStep) -> StepResult:
        if isinstance(step, Sleep):
            await asyncio.sleep(step.seconds)
            return None
        if isinstance(step, RenewTokens):
            async with self._token_lock:
                await self._run_flow(self.request_flow.renew_tokens(step.tokens))
            return None
        try:
            response = await self._http_transport.handle_async_request(step)
            try:
                await response.aread()
            finally:
                await response.aclose()
        except httpx2.RequestError as error:
            return error
        return response
