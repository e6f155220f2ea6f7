"""Network settings: addresses, URLs and connections."""

from typing import Final

from tapgate.core.settings.declaration import Match, Setting, SettingGroup, Values
from tapgate.core.settings.value_types import Integer, Networks, Origins, Text, Url

DEFAULT_MESSENGER_URL: Final = "http://127.0.0.1:8001"

_WILDCARD_HOSTS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


def format_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def format_local_url(host: str, port: int) -> str:
    """Return the URL at which programs on the same machine reach a service."""
    return format_url(_WILDCARD_HOSTS.get(host, host), port)


def _derive_gateway_url(values: Values) -> str:
    return format_local_url(values["host"], values["port"])


def _derive_messenger_url(values: Values) -> str:
    return format_local_url(values["host"], values["messenger_port"])


class NetworkSettings(SettingGroup):
    title = "Network"

    public_url = Setting(
        Url(),
        _derive_gateway_url,
        "Public URL",
        "The gateway's public URL, used in links and as the site of"
        " [passkeys](accounts.md#passkeys). Derived from host and port by default.",
        french="URL publique",
        production="Use `https://`.",
        example="https://pay.example.com",
        required=True,
        match=Match.WARN_IN_PRODUCTION,
        template="https://pay.example.com",
    )
    host = Setting(
        Text(),
        "127.0.0.1",
        "Listen address",
        "Address that both services listen on.",
        french="Adresse d'écoute",
        production="Listen on a private network, behind a proxy that terminates TLS.",
        example="0.0.0.0",  # noqa: S104
        suggested=True,
    )
    port = Setting(
        Integer(1, 65535),
        8000,
        "Gateway port",
        "Port the gateway listens on.",
        french="Port de la passerelle",
        example="8080",
    )
    messenger_port = Setting(
        Integer(1, 65535),
        8001,
        "Messenger port",
        "Port the messenger listens on. Must differ from the gateway's port.",
        french="Port de la messagerie",
        example="8081",
    )
    gateway_url = Setting(
        Url(),
        _derive_gateway_url,
        "Internal gateway URL",
        "URL at which the messenger reaches the gateway. Derived from host and port by default.",
        french="URL interne de la passerelle",
        example="http://gateway.internal:8000",
        suggested=True,
    )
    messenger_url = Setting(
        Url(),
        _derive_messenger_url,
        "Internal messenger URL",
        "URL at which the gateway reaches the messenger. Derived from host and port by default.",
        french="URL interne de la messagerie",
        example="http://messenger.internal:8001",
        suggested=True,
    )
    trusted_proxies = Setting(
        Networks(),
        (),
        "Trusted proxies",
        "Proxies whose `X-Forwarded-For` header is trusted. If unset, all clients behind a proxy"
        " share one address and its limits, and the gateway logs a warning when it receives the"
        " header.",
        french="Proxys de confiance",
        production="Set it behind a proxy.",
        example="10.0.0.0/8, ::1",
        template="127.0.0.1",
    )
    cors_origins = Setting(
        Origins(),
        (),
        "Allowed CORS origins",
        "Origins of [browser apps](typescript.md#browser-apps) that may call the gateway's API."
        " Origins must match exactly; `*` is rejected.",
        french="Origines CORS autorisées",
        production="List only origins that you control.",
        example="https://app.example.com",
    )
    max_connections = Setting(
        Integer(1, 1_000_000),
        4096,
        "Max. connections per process",
        "Maximum open connections per gateway or messenger process. Further connections get 503"
        " with `Retry-After` and are closed. If trusted proxies are set, one eighth is reserved for"
        " them.",
        french="Connexions max. par processus",
        production="As memory allows: up to about 1 MiB per connection under attack.",
        example="10000",
    )
    max_connections_per_address = Setting(
        Integer(1, 1_000_000),
        256,
        "Max. connections per client address",
        "Maximum open connections per client address (IPv6: per /64). Trusted proxies are exempt.",
        french="Connexions max. par adresse de client",
        production="Raise it if many clients share one address.",
        example="1000",
    )
