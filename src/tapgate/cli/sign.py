"""`tapgate sign`: print the headers of a signed request as curl options."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tapgate import signing
from tapgate.clock import format_rfc3339, system_clock
from tapgate.settings import load_settings

app = typer.Typer(
    help="Print the headers of a signed request, as options of curl.",
    epilog="""curl -d @body.json $(tapgate sign pos POST /api/v1/pos/payment -d @body.json
        --key-id key_... --secret ...) http://127.0.0.1:8000/api/v1/pos/payment""",
    no_args_is_help=True,
)

Method = Annotated[str, typer.Argument(help="The HTTP method.")]
RequestPath = Annotated[str, typer.Argument(help="The path as called, such as /api/v1/...")]
Body = Annotated[
    str, typer.Option("--data", "-d", help="The body; @FILE reads a file, @- standard input.")
]
KeyId = Annotated[str, typer.Option(help="The key's id, key_...")]
Secret = Annotated[
    str, typer.Option(help="The key's secret.", envvar="TAPGATE_SIGN_SECRET", show_envvar=True)
]
Timestamp = Annotated[str | None, typer.Option(help="Sign for another time than now.")]


@app.command()
def pos(
    method: Method,
    path: RequestPath,
    key_id: KeyId,
    secret: Secret,
    data: Body = "",
    timestamp: Timestamp = None,
) -> None:
    """Sign a request as a terminal or a processor."""
    _print_headers(
        _build_signed_headers(method, path, data, key_id=key_id, secret=secret, timestamp=timestamp)
    )


@app.command()
def partner(
    method: Method,
    path: RequestPath,
    key_id: KeyId,
    secret: Secret,
    partner_id: Annotated[str, typer.Option(help="The partner's id, ptn_...")],
    data: Body = "",
    timestamp: Timestamp = None,
) -> None:
    """Sign a request as a partner."""
    headers = _build_signed_headers(
        method, path, data, key_id=key_id, secret=secret, timestamp=timestamp
    )
    _print_headers({"X-Partner-ID": partner_id, **headers})


@app.command()
def service(
    method: Method,
    path: Annotated[str, typer.Argument(help="The path, with its query if it has one.")],
    name: Annotated[str, typer.Option(help="The service's name.")] = "messenger",
    secret: Annotated[
        str | None,
        typer.Option(help="Without: the one of the settings.", envvar="TAPGATE_SIGN_SECRET"),
    ] = None,
    timestamp: Timestamp = None,
) -> None:
    """Sign a request as an internal service."""
    if secret is None:
        known = load_settings(os.environ).service_secrets
        if name not in known:
            raise typer.BadParameter(f"no secret is set for it; known: {', '.join(known)}")
        secret = known[name]
    moment = timestamp or str(int(system_clock().timestamp()))
    bare, _, query = path.partition("?")
    signature = signing.sign_service(secret.encode(), method, bare, query.encode(), moment)
    _print_headers(
        {
            "X-Service-Name": name,
            "X-Service-Timestamp": moment,
            "X-Service-Signature": signature,
        }
    )


def _build_signed_headers(
    method: str, path: str, data: str, *, key_id: str, secret: str, timestamp: str | None
) -> dict[str, str]:
    moment = timestamp or format_rfc3339(system_clock())
    bare = path.partition("?")[0]
    signature = signing.sign(secret.encode(), method, bare, moment, _read_body(data))
    return {"X-API-Key-ID": key_id, "X-Timestamp": moment, "X-Signature": signature}


def _read_body(data: str) -> bytes:
    if data == "@-":
        return sys.stdin.buffer.read()
    if not data.startswith("@"):
        return data.encode()
    try:
        return Path(data[1:]).read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{data[1:]}: {error.strerror}") from None


def _print_headers(headers: dict[str, str]) -> None:
    # Values contain no spaces, so `$(...)` in a shell needs no quotes.
    print(" ".join(f"-H {name}:{value}" for name, value in headers.items()))
