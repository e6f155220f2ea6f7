"""Settings of single sign-on with OpenID Connect."""

from typing import Final

import msgspec

from tapgate.environment_reader import EnvironmentReader
from tapgate_client.schemas.admin import AdminRole

_DEFAULT_ROLE_CLAIM: Final = "roles"
_DEFAULT_SCOPES: Final = "openid email profile"


class OidcSettings(msgspec.Struct, frozen=True, kw_only=True):
    issuer: str
    client_id: str
    #: None for a public client, which only PKCE protects.
    client_secret: str | None
    role_claim: str
    #: Role by value of the claim. Of several values, the first in this order counts.
    role_map: dict[str, str]
    scopes: str

    def __repr__(self) -> str:
        return f"OidcSettings(issuer={self.issuer!r}, client_id={self.client_id!r})"


def read_oidc_settings(
    reader: EnvironmentReader, *, allow_insecure: bool = False
) -> OidcSettings | None:
    """Return the settings, or None without an issuer. `allow_insecure` accepts `http://`."""
    schemes = ("http", "https") if allow_insecure else ("https",)
    issuer = reader.get_url("OIDC_ISSUER", schemes)
    if issuer is None:
        return None
    return OidcSettings(
        issuer=issuer,
        client_id=_require_text(reader, "OIDC_CLIENT_ID"),
        client_secret=reader.get_text("OIDC_CLIENT_SECRET"),
        role_claim=reader.get_text("OIDC_ROLE_CLAIM") or _DEFAULT_ROLE_CLAIM,
        role_map=_parse_role_map(reader),
        scopes=_parse_scopes(reader),
    )


def _require_text(reader: EnvironmentReader, name: str) -> str:
    text = reader.get_text(name)
    if text is None:
        raise reader.build_error(name, "must be set if TAPGATE_OIDC_ISSUER is set")
    return text


def _parse_role_map(reader: EnvironmentReader) -> dict[str, str]:
    name = "OIDC_ROLE_MAP"
    try:
        role_map = msgspec.json.decode(_require_text(reader, name), type=dict[str, AdminRole])
    except ValueError:
        role_map = {}
    if not role_map:
        message = 'must be a JSON object of roles such as {"tapgate-admins": "system_admin"}'
        raise reader.build_error(name, message)
    return {value: str(role) for value, role in role_map.items()}


def _parse_scopes(reader: EnvironmentReader) -> str:
    scopes = (reader.get_text("OIDC_SCOPES") or _DEFAULT_SCOPES).split()
    if "openid" not in scopes:
        raise reader.build_error("OIDC_SCOPES", "must contain openid")
    return " ".join(scopes)
