"""Printed values, errors and logs contain no secret, PIN or body."""

import logging
import re
import traceback
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from cases import each
from client.operation_catalog import list_methods, list_structs
from drivers.network_faults import SERVE_AND_DROP, FlakyServer, build_error_response, build_response
from tapgate_client import (
    NO_RETRIES,
    AccessToken,
    ApiKey,
    AsyncTapgateClient,
    Login,
    PartnerKey,
    PosKey,
    ServiceSecret,
    TapgateError,
)
from tapgate_client.credentials import UnsignedRequest
from tapgate_client.operation import build_operation
from tapgate_client.schemas.admin import Tokens
from tapgate_client.schemas.common import Redacted, SigningKeyCreated

SECRET = "s3cr3t"
#: Longer than a real PIN, because four digits could also occur in a port or a request ID.
PIN = "pin-8352-of-ada"


@each(
    "value",
    [
        ApiKey(SECRET),
        AccessToken(SECRET),
        Login("ada@example.com", SECRET),
        PosKey("key_1", SECRET),
        PartnerKey("key_1", "ptn_1", SECRET),
        ServiceSecret("messenger", SECRET),
        UnsignedRequest("POST", "/", b"", SECRET.encode()),
        Tokens(token=SECRET, refresh_token=SECRET, expires_in=1),
        SigningKeyCreated(api_key_id="key_1", hmac_secret=SECRET),
        build_operation("reads", "GET /{token}", str, path={"token": SECRET}, body={"pin": SECRET}),
    ],
)
def test_repr_of_a_value_contains_no_secret(value: Any) -> None:
    assert SECRET not in repr(value) + str(value) + f"{value}"


#: Names of response fields that hold a secret or a URL that requires no credential.
SECRET_FIELDS = re.compile(r"key|token|.*_token|secret|.*_secret|statement_url")


def test_every_record_with_a_secret_hides_its_fields() -> None:
    records = {
        struct
        for method in list_methods()
        for struct in list_structs(method.sample_operation.response_type)
    }
    with_secrets = {
        struct
        for struct in records
        if any(SECRET_FIELDS.fullmatch(field) for field in struct.__struct_fields__)
    }
    assert {"Tokens", "ApiKeyWithSecret"} < {struct.__name__ for struct in with_secrets}
    for struct in with_secrets:
        assert issubclass(struct, Redacted), struct


CALLS_WITH_SECRETS: dict[str, Callable[[AsyncTapgateClient], Any]] = {
    "pin": lambda gateway: gateway.subscribers.verify_pin("sub_1", pin=PIN),
    "money": lambda gateway: gateway.wallet.transfer_p2p(
        sender_id="sub_1", recipient_card_serial="TAP-1", amount="1", pin=PIN
    ),
    "token": lambda gateway: gateway.wallet.download_statement(SECRET),
    "login": lambda gateway: gateway.admin.log_in(email="ada@example.com", password=SECRET),
}


@pytest.mark.parametrize("send_request", CALLS_WITH_SECRETS.values(), ids=CALLS_WITH_SECRETS)
@pytest.mark.parametrize(
    "behavior",
    [
        SERVE_AND_DROP,
        build_response(200, f'{{"pin": "{PIN}", "token": "{SECRET}"'),
        build_response(404, f"{PIN} {SECRET}"),
        build_response(200, '{"token": 1}'),
        build_error_response(500, "INTERNAL_ERROR"),
    ],
    ids=["dropped", "echo", "not found", "wrong type", "failed"],
)
async def test_errors_and_logs_contain_no_secret(
    caplog: pytest.LogCaptureFixture,
    send_request: Callable[[AsyncTapgateClient], Any],
    behavior: str | bytes,
) -> None:
    caplog.set_level(logging.INFO)
    text = []
    async with FlakyServer(httpx2.MockTransport(lambda _: httpx2.Response(204))).listen() as server:
        server.behaviors = [behavior]
        secret = ServiceSecret("messenger", SECRET)
        async with AsyncTapgateClient(server.url, secret, retries=NO_RETRIES) as gateway:
            try:
                text.append(repr(await send_request(gateway)))
            except TapgateError as error:
                text += [
                    str(error),
                    repr(error),
                    repr(error.__cause__),
                    *format_exception_chain(error),
                ]
    output = "\n".join([*text, caplog.text])
    assert PIN not in output
    assert SECRET not in output


def format_exception_chain(error: BaseException) -> list[str]:
    """Return the messages from an exception and its context chain, without source code."""
    return list(traceback.TracebackException.from_exception(error).format_exception_only()) + (
        [] if error.__context__ is None else format_exception_chain(error.__context__)
    )
