"""Report worker: runs the reports that gateway workers send to it; see `report_calls`."""

import asyncio
import contextlib
import os
import signal
import socket
from typing import Any, Final

import msgspec
import structlog

from tapgate.http.api.app import App
from tapgate.http.api.report_calls import CHUNK_BYTES, ReportCall, ReportResult
from tapgate.http.api.request_context import RequestContext
from tapgate.http.api.services import Services
from tapgate.http.app import log_failure
from tapgate.http.endpoint import Reply
from tapgate.http.responses import encode_json
from tapgate.runtime.handover import (
    DRAIN_TIMEOUT_SECONDS,
    LIFELINE_FD_VARIABLE,
    LISTENER_FD_VARIABLE,
    READY_BYTE,
)
from tapgate.runtime.local_rpc import GREETING, Failure, encode_frame, read_frame
from tapgate_client.errors import ApiError

_log = structlog.get_logger()

#: Calls that a worker runs, queues and sends. With the largest file size, it bounds memory.
_MAX_CALLS: Final = 32
#: Report workers get CPU time that gateway workers and PostgreSQL do not use.
_NICENESS: Final = 10
_ACCEPT_RETRY_SECONDS: Final = 0.1

_decoder: Final = msgspec.msgpack.Decoder(ReportCall)


class ReportServer:
    def __init__(self, app: App, services: Services) -> None:
        self._app = app
        self._services = services
        self._free_slots = asyncio.Semaphore(_MAX_CALLS)
        self._calls: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve on the supervisor's socket until a stop signal, or until the supervisor dies."""
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        drain_seconds = self._services.settings.drain_seconds
        for number in (signal.SIGINT, signal.SIGTERM):
            # Gateway workers accept requests while they drain.
            loop.add_signal_handler(number, loop.call_later, drain_seconds, stop.set)
        with (
            socket.socket(fileno=int(os.environ[LISTENER_FD_VARIABLE])) as listener,
            socket.socket(fileno=int(os.environ[LIFELINE_FD_VARIABLE])) as lifeline,
        ):
            os.nice(_NICENESS)  # only now, so that a busy machine does not delay the startup
            with contextlib.suppress(OSError):  # the supervisor has died: detected below
                lifeline.sendall(READY_BYTE)

            def on_supervisor_exit() -> None:
                loop.remove_reader(lifeline)
                stop.set()

            loop.add_reader(lifeline, on_supervisor_exit)
            await self.serve(listener, stop)
            loop.remove_reader(lifeline)

    async def serve(self, listener: socket.socket, stop: asyncio.Event) -> None:
        """Accept calls until `stop` is set, then finish those in progress."""
        listener.setblocking(False)
        accepting = asyncio.create_task(self._accept(listener))
        await stop.wait()
        accepting.cancel()
        await asyncio.wait([accepting])
        if self._calls:
            await asyncio.wait(self._calls, timeout=DRAIN_TIMEOUT_SECONDS)
        for call in self._calls:
            call.cancel()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            # Calls beyond the limit wait in the socket's queue, for any report worker.
            await self._free_slots.acquire()
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:  # too many open files, or the caller has disconnected
                self._free_slots.release()
                _log.warning("reports.accept_failed", error=type(error).__name__)
                await asyncio.sleep(_ACCEPT_RETRY_SECONDS)
                continue
            task = asyncio.create_task(self._serve_call(connection))
            self._calls.add(task)
            task.add_done_callback(self._on_call_end)

    def _on_call_end(self, task: asyncio.Task[None]) -> None:
        self._calls.discard(task)
        self._free_slots.release()

    async def _serve_call(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=connection)
        try:
            writer.write(GREETING)
            if (frame := await read_frame(reader)) is None:
                return
            call = _decoder.decode(frame)
            work = asyncio.create_task(self._run_call(call))
            if await _is_finished_before_disconnect(work, reader):
                head, body = work.result()
                writer.write(encode_frame(head))
                for start in range(0, len(body), CHUNK_BYTES):
                    writer.write(body[start : start + CHUNK_BYTES])
                    await writer.drain()
        except OSError:
            pass  # the gateway worker has disconnected
        finally:
            writer.close()

    async def _run_call(self, call: ReportCall) -> tuple[ReportResult | Failure, memoryview]:
        request = RequestContext(
            services=self._services,
            method=call.method,
            path=call.path,
            query=call.query,
            headers={b"content-type": call.content_type, b"accept": call.accept},
            ip=call.ip,
            request_id=call.request_id,
            body=call.body,
            caller=call.principal,
        )
        try:
            return _render(*await self._app.run_report(request))
        except ApiError as error:
            failure = error
        except Exception as error:
            log_failure(request, error)
            failure = self._app.build_internal_error(request)
        return Failure.from_error(failure), memoryview(b"")


async def _is_finished_before_disconnect(
    work: asyncio.Task[Any], reader: asyncio.StreamReader
) -> bool:
    """Wait for the work. If the gateway worker disconnects, cancel it and return False."""
    disconnect = asyncio.create_task(reader.read(1))
    try:
        await asyncio.wait((work, disconnect), return_when=asyncio.FIRST_COMPLETED)
        return work.done()
    finally:
        disconnect.cancel()
        if not work.done():
            work.cancel()
            await asyncio.wait([work])


def _render(status: int, result: Any) -> tuple[ReportResult, memoryview]:
    reply = result if isinstance(result, Reply) else Reply(result)
    is_file = isinstance(reply.body, bytes)
    body = reply.body if isinstance(reply.body, bytes) else encode_json(reply.body)
    head = ReportResult(
        status=reply.status or status,
        headers=dict(reply.headers),
        content_type=reply.content_type,
        size=len(body),
        is_file=is_file,
    )
    return head, memoryview(body)
