"""Request and error logs, which contain no secrets or request values."""

import asyncio
import gc
import json
import logging
import os
import re
import select
import sys
import threading
import time
from pathlib import Path

import pytest
import structlog

from builders.http_apps import (
    TRACE_HEADERS,
    VALID_THING,
    WRITER,
    EdgeApp,
    LogCapture,
    build_bearer_headers,
    run_edge_app,
)
from harness import split_words
from tapgate.runtime import log_stream, logs
from tapgate.runtime.log_stream import LogStream
from tapgate.sites.guide.site import GuideSite


async def test_each_request_writes_one_log_line(gateway: EdgeApp, log_capture: LogCapture) -> None:
    response = await gateway.client.post(
        "/api/v1/things/lamp/parts/bulb/use?pin=1234", headers=build_bearer_headers(WRITER)
    )
    (line,) = log_capture.records
    assert line.pop("time").endswith("Z")
    assert 0 <= line.pop("ms") < 60_000
    assert line == {
        "event": "request",
        "level": "info",
        "request_id": response.headers["x-request-id"],
        "method": "POST",
        "endpoint": "/api/v1/things/{name}/parts/{part}/use",
        "status": 422,  # an undeclared parameter
        "principal": WRITER.id,
        "ip": "127.0.0.1",
    }


async def test_unmatched_request_is_logged_without_its_path(
    gateway: EdgeApp, log_capture: LogCapture
) -> None:
    await gateway.client.get("/secret-path?a=secret")
    (line,) = log_capture.records
    assert (line["endpoint"], line["principal"], line["status"]) == ("unmatched", None, 404)
    assert "secret" not in log_capture.text


async def test_unexpected_error_is_logged_without_values(
    gateway: EdgeApp, log_capture: LogCapture
) -> None:
    headers = build_bearer_headers(WRITER) | TRACE_HEADERS
    response = await gateway.client.post("/api/v1/fails", json=VALID_THING, headers=headers)
    failure, request = log_capture.records
    assert failure["event"] == "request.failed"
    assert failure["request_id"] == response.headers["x-request-id"]
    assert failure["failure"]["types"] == ["builtins.RuntimeError"]
    assert failure["failure"]["frames"][-1].endswith(" raise_unexpected_error")
    assert (request["level"], request["status"]) == ("error", 500)
    assert VALID_THING["pin"] not in split_words(log_capture.text)


async def test_text_format_has_one_short_line_per_request_and_event(
    gateway: EdgeApp, log_capture: LogCapture
) -> None:
    logs.configure(log_capture.stream, log_format="text")
    try:
        await gateway.client.get("/secret-path?a=secret")
        structlog.get_logger().warning("cache.lost", pin="1234", nested={"a": 1})
        try:
            raise RuntimeError("secret")
        except RuntimeError:
            structlog.get_logger().error("failed", exc_info=True)
    finally:
        logs.configure(log_capture.stream)
    request, event, failure, error_type, frame = log_capture.text.splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d 404 GET    unmatched  \d+ ms", request)
    assert event.endswith(' cache.lost pin=*** nested={"a":1}')
    assert failure.endswith(" failed") and error_type == "    builtins.RuntimeError"
    assert frame.endswith("test_text_format_has_one_short_line_per_request_and_event")


@pytest.mark.parametrize("path", ["/live", "/ready"])
async def test_successful_health_check_is_not_logged(
    gateway: EdgeApp, log_capture: LogCapture, path: str
) -> None:
    assert (await gateway.client.get(path)).status_code == 200
    assert log_capture.records == []


async def test_failed_health_check_is_logged(gateway: EdgeApp, log_capture: LogCapture) -> None:
    gateway.services.health.is_draining = True
    assert (await gateway.client.get("/ready")).status_code == 503
    (line,) = log_capture.records
    assert (line["endpoint"], line["status"]) == ("/ready", 503)


async def test_text_format_omits_served_assets(tmp_path: Path, log_capture: LogCapture) -> None:
    async with run_edge_app(tmp_path, [GuideSite()]) as gateway:
        await gateway.client.get("/guide/assets/guide.css")
        assert log_capture.records[-1]["endpoint"] == "/guide/assets"
        logs.configure(log_capture.stream, log_format="text")
        try:
            await gateway.client.get("/guide/assets/guide.css")
            await gateway.client.get("/guide/assets/missing.css")
        finally:
            logs.configure(log_capture.stream)
    (line,) = log_capture.text.splitlines()[1:]
    assert " 404 GET    /guide/assets " in line


def test_secrets_are_masked_by_field_name(log_capture: LogCapture) -> None:
    structlog.get_logger().info(
        "event",
        pin="1",
        old_pin="1",
        api_key="1",
        tokens=["1"],
        nested={"hmac-secret": "1", "fine": 2},
        key_id="key_2",
        opinion=2,
    )
    (line,) = log_capture.records
    masked = ("pin", "old_pin", "api_key", "tokens")
    assert [line[name] for name in masked] == ["***"] * 4
    assert line["nested"] == {"hmac-secret": "***", "fine": 2}
    assert (line["key_id"], line["opinion"], line["level"]) == ("key_2", 2, "info")


def test_exceptions_are_logged_by_type_and_location(log_capture: LogCapture) -> None:
    try:
        try:
            raise KeyError("1234")
        except KeyError as error:
            raise ValueError("1234") from error
    except ValueError:
        structlog.get_logger().exception("went wrong")
    (line,) = log_capture.records
    assert line["failure"]["types"] == ["builtins.KeyError", "builtins.ValueError"]
    assert len(line["failure"]["frames"]) == 2
    assert "1234" not in split_words(log_capture.text)


async def test_unhandled_task_and_callback_errors_are_logged_without_values(
    log_capture: LogCapture,
) -> None:
    """The event loop includes the exception's text and the callback's arguments in its message."""

    async def fail() -> None:
        raise ValueError("1234")

    def raise_error(_: object) -> None:
        raise ValueError("1234")

    gc.collect()  # collect garbage of earlier tests, so that it is not reported here
    log_capture.stream.truncate(0)
    log_capture.stream.seek(0)
    task = asyncio.create_task(fail())
    while not task.done():
        await asyncio.sleep(0)
    del task
    gc.collect()
    loop = asyncio.get_running_loop()
    loop.default_exception_handler(
        {"message": "Exception in callback f({'pin': '1234'})", "exception": ValueError("1234")}
    )
    loop.call_soon(raise_error, {"pin": "1234"})
    async with asyncio.timeout(30):
        while len(log_capture.records) < 3:
            await asyncio.sleep(0)
    assert [line["message"] for line in log_capture.records] == [
        "Task exception was never retrieved",
        "Exception in callback",
        "Exception in callback",
    ]
    assert {line["failure"]["types"][0] for line in log_capture.records} == {"builtins.ValueError"}
    assert "1234" not in split_words(log_capture.text)


def test_unhandled_interpreter_errors_are_logged_without_values(log_capture: LogCapture) -> None:
    class FailsOnDelete:
        def __del__(self) -> None:
            raise ValueError("1234")

    def fail() -> None:
        raise ValueError("1234")

    saved = sys.unraisablehook, threading.excepthook, sys.excepthook
    gc.disable()  # keep garbage of earlier tests out of this log
    logs.install_exception_hooks()
    try:
        FailsOnDelete()
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        try:
            fail()
        except ValueError as error:
            sys.excepthook(ValueError, error, error.__traceback__)
    finally:
        sys.unraisablehook, threading.excepthook, sys.excepthook = saved
        gc.enable()
    assert [line["event"] for line in log_capture.records] == ["process.failed"] * 3
    assert all(line["failure"]["types"] == ["builtins.ValueError"] for line in log_capture.records)
    assert "1234" not in split_words(log_capture.text)


def test_library_logs_omit_values(log_capture: LogCapture) -> None:
    logging.getLogger("library").warning("lost %s", "1234")
    (line,) = log_capture.records
    assert (line["event"], line["message"], line["level"]) == ("library", "lost %s", "warning")
    try:
        raise ValueError("1234")
    except ValueError:
        logging.getLogger("library").exception("failed for %s", "1234")
    assert log_capture.records[1]["failure"]["types"] == ["builtins.ValueError"]
    assert "1234" not in split_words(log_capture.text)


def test_values_that_are_not_json_serializable_are_logged_by_type(log_capture: LogCapture) -> None:
    structlog.get_logger().info("event", thing=object())
    assert log_capture.records[0]["thing"] == "object"


REQUEST_LINE = logs.RequestLogLine(
    time=logs.now(),
    level="info",
    request_id="r",
    method="GET",
    endpoint="/",
    status=200,
    ms=1.0,
    principal=None,
    ip="::1",
)


def test_log_pipe_closed_by_its_reader_does_not_block_requests(log_capture: LogCapture) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    logs.configure(LogStream(writer))
    logs.write_request(REQUEST_LINE)
    structlog.get_logger().info("event")
    os.close(writer)


def test_thread_that_waits_for_the_log_pipe_does_not_fail_other_writers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Libraries that run in worker threads log too."""
    monkeypatch.setattr(log_stream, "CHUNK_TIMEOUT_MS", 200)
    reader, writer = os.pipe()
    stream = LogStream(writer)
    thread = threading.Thread(target=stream.write, args=(b"x" * (1 << 21) + b"\n",))
    thread.start()
    while select.select([], [writer], [], 0)[1]:
        time.sleep(0.001)  # until the pipe is full
    stream.write(b"second\n")
    thread.join()
    os.read(reader, 1 << 21)
    stream.write(b"third\n")
    os.close(writer)
    assert os.read(reader, 1 << 20) == b'{"event":"log.missing","lines":2}\nthird\n'
    os.close(reader)


def test_unread_log_does_not_block_requests_and_reports_missing_lines(
    log_capture: LogCapture,
) -> None:
    reader, writer = os.pipe()
    logs.configure(LogStream(writer))
    structlog.get_logger().info("long", words=["x" * 100] * 100)  # longer than one chunk
    for _ in range(2_000):  # more than the pipe holds
        logs.write_request(REQUEST_LINE)
    written = os.read(reader, 1 << 20).count(b"\n")
    assert 0 < written < 2_001
    logs.write_request(REQUEST_LINE)
    os.close(writer)
    missing, line = (json.loads(text) for text in os.read(reader, 1 << 20).splitlines())
    assert missing == {"event": "log.missing", "lines": 2_001 - written}
    assert line["event"] == "request"
    os.close(reader)
