"""`tapgate sign`: print a signed request's headers as curl options."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tapgate.core.settings import load_settings
from tapgate_client import signing
from tapgate_client.clock import format_rfc3339, system_clock

app = typer.Typer(
    help="Print the headers of a signed request as curl options.",
    epilog="""curl -d @body.json $(tapgate sign pos POST /api/v1/pos/payment -d @body.json
        --key-id key_... --secret ...) http://127.0.0.1:8000/api/v1/pos/payment""",
    no_args_is_help=True,
)

Method = Annotated[str, typer.Argument(help="HTTP method.")]
RequestPath = Annotated[str, typer.Argument(help="Request path, such as /api/v1/...")]
Body = Annotated[
    str,
    typer.Option("--data", "-d", help="Request body. @FILE reads a file, @- reads standard input."),
]
KeyId = Annotated[str, typer.Option(help="Key ID (key_...).")]
Secret = Annotated[
    str, typer.Option(help="Secret of the key.", envvar="TAPGATE_SIGN_SECRET", show_envvar=True)
]
Timestamp = Annotated[str | None, typer.Option(help="Timestamp to sign. Defaults to now.")]


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
    partner_id: Annotated[str, typer.Option(help="Partner ID (ptn_...).")],
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
    path: Annotated[str, typer.Argument(help="Request path, with its query string.")],
    name: Annotated[str, typer.Option(help="Service name.")] = "messenger",
    secret: Annotated[
        str | None,
        typer.Option(
            help="Secret of the service. Defaults to TAPGATE_SERVICE_SECRETS.",
            envvar="TAPGATE_SIGN_SECRET",
        ),
    ] = None,
    timestamp: Timestamp = None,
) -> None:
    """Sign a request as an internal service."""
    if secret is None:
        secrets = load_settings(os.environ).service_secrets
        if name not in secrets:
            raise typer.BadParameter(
                f"no secret is set for this service, only for {', '.join(secrets)}"
            )
        secret = secrets[name]
    signed_at = timestamp or str(int(system_clock().timestamp()))
    bare_path, _, query = path.partition("?")
    signature = signing.sign_service(secret.encode(), method, bare_path, query.encode(), signed_at)
    _print_headers(
        {"X-Service-Name": name, "X-Service-Timestamp": signed_at, "X-Service-Signature": signature}
    )


def _build_signed_headers(
    method: str, path: str, data: str, *, key_id: str, secret: str, timestamp: str | None
) -> dict[str, str]:
    signed_at = timestamp or format_rfc3339(system_clock())
    bare_path = path.partition("?")[0]
    signature = signing.sign(secret.encode(), method, bare_path, signed_at, _read_body(data))
    return {"X-API-Key-ID": key_id, "X-Timestamp": signed_at, "X-Signature": signature}


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
