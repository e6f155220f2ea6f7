"""Security settings: secrets, the first admin, sessions and single sign-on."""

from enum import StrEnum
from typing import Annotated

import msgspec

from tapgate.core.settings.declaration import (
    MISSING,
    Match,
    OptionalGroup,
    OptionalSetting,
    Secrecy,
    Setting,
    SettingGroup,
)
from tapgate.core.settings.value_types import (
    MIN_SECRET_LENGTH,
    Choice,
    Email,
    FilePath,
    Integer,
    JsonObject,
    Password,
    SecretKeys,
    Text,
    Url,
    ValueType,
)
from tapgate_client.schemas.admin import PLATFORM_ROLES, AdminRole
from tapgate_client.schemas.nodes import NodeRole


class SecondFactor(StrEnum):
    """Whether admins have second factors."""

    OFF = "off"
    OPTIONAL = "optional"
    REQUIRED = "required"


class _Scopes(ValueType[str]):
    accepted = "scopes, separated by spaces"

    def parse(self, text: str) -> str:
        scopes = text.split()
        if "openid" not in scopes:
            raise ValueError("must contain openid")
        return " ".join(scopes)


class OidcSettings(SettingGroup):
    """Single sign-on with OpenID Connect."""

    title = "Security and sign-in"
    prefix = "OIDC_"

    issuer = Setting(
        Url("http", "https", strict_schemes=("https",)),
        MISSING,
        "OIDC issuer",
        "Issuer URL: the OpenID Connect identity provider with which admins sign in to the"
        " console. See [Single sign-on](accounts.md#single-sign-on).",
        french="Émetteur OIDC",
        production="Must be `https://`.",
        example="https://login.example.com/realms/staff",
    )
    client_id = Setting(
        Text(),
        MISSING,
        "OIDC client ID",
        "Tapgate's client ID at the provider. Must be set with the issuer.",
        french="Identifiant du client OIDC",
        example="tapgate",
    )
    #: None for a public client, which only PKCE protects.
    client_secret = OptionalSetting(
        Text(),
        "OIDC client secret",
        "Client secret at the provider. If unset, Tapgate is a public client, which only PKCE"
        " protects.",
        french="Secret du client OIDC",
        production="Set it.",
        example="a secret from the provider",
        secrecy=Secrecy.HIDDEN,
        used_by=NodeRole.GATEWAY,
    )
    role_claim = Setting(
        Text(),
        "roles",
        "OIDC role claim",
        "ID token claim with the person's roles or groups, as text or a list. Dots separate the"
        " names of nested claims.",
        french="Revendication OIDC du rôle",
        example="realm_access.roles",
    )
    role_map = Setting(
        JsonObject(
            dict[str, AdminRole],
            'must be a JSON object with roles such as {"tapgate-admins": "system_admin"}',
            accepts_no_items=False,
            values=PLATFORM_ROLES,
        ),
        MISSING,
        "OIDC role map",
        "Admin role by claim value. Of several values, the first in this order counts. Must be set"
        " with the issuer.",
        french="Correspondance des rôles OIDC",
        example='{"tapgate-admins": "system_admin", "finance": "finance_user"}',
    )
    scopes = Setting(
        _Scopes(),
        "openid email profile",
        "OIDC scopes",
        "Scopes to request. Some providers send groups only for a scope of their own.",
        french="Portées OIDC",
        example="openid email profile groups",
    )

    def __repr__(self) -> str:
        return f"OidcSettings(issuer={self.issuer!r}, client_id={self.client_id!r})"


_NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]


class SecuritySettings(SettingGroup):
    title = "Security and sign-in"

    second_factor = Setting(
        Choice(SecondFactor),
        SecondFactor.OPTIONAL,
        "Admin second factor",
        "Admin second factors: `off`, `optional`, or `required` (an admin without a factor can"
        " only enroll one). See [Admin accounts](accounts.md).",
        french="Second facteur des administrateurs",
        production="`required`",
        example="required",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    session_idle_minutes = OptionalSetting(
        Integer(1, 10_080),
        "Idle session timeout (min)",
        "Minutes without a request after which an admin session ends. If unset: 60 for the console,"
        " no limit for the API.",
        french="Expiration des sessions inactives (min)",
        example="30",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    #: None without single sign-on.
    oidc = OptionalGroup(
        OidcSettings,
        "Single sign-on",
        french="Authentification unique",
        secrecy=Secrecy.HIDDEN,
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    breached_passwords = OptionalSetting(
        FilePath(),
        "Breached password list",
        "File with SHA-1 hashes of breached passwords, which admins cannot choose. See"
        " [Password](accounts.md#password).",
        french="Liste des mots de passe compromis",
        production="Recommended.",
        example="/var/lib/tapgate/pwned.txt",
    )
    admin_email = OptionalSetting(
        Email(),
        "First admin email",
        "The first system_admin's email address, set together with the password. If unset,"
        " development and testing create `admin@example.com`.",
        french="E-mail du premier administrateur",
        production="Needed for the first start. Remove it afterwards.",
        example="ada@example.com",
        secrecy=Secrecy.HIDDEN,
        template="",
    )
    admin_password = OptionalSetting(
        Password(max_length=255),
        "First admin password",
        "The first system_admin's password, at most 255 characters. If unset, development and"
        " testing generate one, print it once on a terminal and store it in `administrator.txt` in"
        " the data folder. Ignored once a system_admin exists.",
        french="Mot de passe du premier administrateur",
        production="Needed for the first start: 12 characters or more, not easy to guess. Remove it"
        " afterwards.",
        example="a long pass phrase",
        secrecy=Secrecy.UNIQUE,
        template="",
    )
    jwt_secret = Setting(
        Text(min_length=MIN_SECRET_LENGTH),
        "",
        "Access token signing key",
        "Key that signs admins' access tokens, 32 characters or more. Changing it invalidates all"
        " of them.",
        french="Clé de signature des jetons d'accès",
        production="Must be hard to guess.",
        example="at-least-32-random-characters-of-your-own",
        required=True,
        generated=True,
        secrecy=Secrecy.STRONG,
        match=Match.REFUSE,
        used_by=NodeRole.GATEWAY,
    )
    #: One key, or several such as `2:key,1:key`, newest first.
    secret_key = Setting(
        SecretKeys(),
        "",
        "Secret key",
        "Key for hashing PINs and for encrypting stored secrets and backups, or several keys,"
        " newest first, to [rotate it](running.md#rotate-the-secret-key). A database is bound to"
        " its keys: protect them like the database, and store a copy separately.",
        french="Clé secrète",
        production="Each key has 32 characters or more.",
        example="another-32-random-characters-of-your-own",
        required=True,
        generated=True,
        secrecy=Secrecy.STRONG,
    )
    service_secrets = Setting(
        JsonObject(
            dict[_NonEmpty, _NonEmpty],
            'must be a JSON object such as {"messenger": "...", "gateway": "..."}',
        ),
        {},
        "Internal service secrets",
        "Internal service secrets by service name. In development and testing they are added to"
        " the generated ones.",
        french="Secrets des services internes",
        production="Must be hard to guess.",
        example='{"messenger": "one secret", "gateway": "another"}',
        required=True,
        generated=True,
        secrecy=Secrecy.STRONG,
        match=Match.REFUSE,
    )
