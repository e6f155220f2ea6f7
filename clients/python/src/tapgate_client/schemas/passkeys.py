"""Passkey requests and responses, in the WebAuthn standard's JSON format (level 3).

Browsers convert to and from this format with `PublicKeyCredential.parseCreationOptionsFromJSON`,
`parseRequestOptionsFromJSON` and `toJSON`. Binary values are base64url without padding.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from tapgate_client.schemas.common import Redacted
from tapgate_client.schemas.fields import InvalidValueError, NameRule, Rule
from tapgate_client.schemas.values import CurrentPassword, Name, Time

_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


class Base64UrlRule(Rule):
    """Binary value in base64url, without padding."""

    example = "AAAA"

    def __init__(self, max_bytes: int) -> None:
        self._max_length = -(-max_bytes * 4 // 3)
        self.max_json_bytes = self._max_length + 2

    def check(self, value: str) -> str:
        if not 1 <= len(value) <= self._max_length:
            raise InvalidValueError(f"must have 1 to {self._max_length} characters")
        # A group of four characters has three bytes, so one character alone has none.
        if _PATTERN.fullmatch(value) is None or len(value) % 4 == 1:
            raise InvalidValueError("must be base64url without padding")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {
            "minLength": 1,
            "maxLength": self._max_length,
            "description": "Binary value in base64url, without padding",
        }


def encode_binary(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_binary(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


CredentialId = Annotated[str, Base64UrlRule(1023)]
_ClientData = Annotated[str, Base64UrlRule(2048)]
PasskeyName = Annotated[str, NameRule(64)]


class PublicKeyCredentialType(StrEnum):
    PUBLIC_KEY = "public-key"


class AttestationResponse(msgspec.Struct, kw_only=True):
    client_data_json: _ClientData = msgspec.field(name="clientDataJSON")
    attestation_object: Annotated[str, Base64UrlRule(6144)] = msgspec.field(
        name="attestationObject"
    )


class AttestedCredential(msgspec.Struct, kw_only=True):
    """New credential: the result of `navigator.credentials.create()`."""

    id: CredentialId
    raw_id: CredentialId = msgspec.field(name="rawId")
    type: PublicKeyCredentialType
    response: AttestationResponse


class AssertionResponse(msgspec.Struct, kw_only=True):
    client_data_json: _ClientData = msgspec.field(name="clientDataJSON")
    authenticator_data: Annotated[str, Base64UrlRule(2048)] = msgspec.field(
        name="authenticatorData"
    )
    signature: Annotated[str, Base64UrlRule(1024)]
    user_handle: Annotated[str, Base64UrlRule(64)] | None = msgspec.field(
        name="userHandle", default=None
    )


class AssertedCredential(msgspec.Struct, kw_only=True):
    """Passkey proof: the result of `navigator.credentials.get()`."""

    id: CredentialId
    raw_id: CredentialId = msgspec.field(name="rawId")
    type: PublicKeyCredentialType
    response: AssertionResponse


class PasskeyEnrollment(msgspec.Struct, kw_only=True):
    current_password: CurrentPassword | None = None


class NewPasskey(msgspec.Struct, kw_only=True):
    name: PasskeyName
    credential: AttestedCredential


class PasskeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: Name
    created_at: Time
    last_used_at: Time | None


class EnrolledPasskey(Redacted, PasskeyRecord, frozen=True, kw_only=True):
    """A new passkey, with recovery codes if the admin had none. They are shown only once."""

    recovery_codes: list[str] | msgspec.UnsetType = msgspec.UNSET


class PasskeyLogin(msgspec.Struct, kw_only=True):
    credential: AssertedCredential


class RelyingPartyEntity(msgspec.Struct, frozen=True):
    id: str
    name: Name


class UserEntity(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    name: Name
    display_name: str


class CredentialParameters(msgspec.Struct, frozen=True):
    alg: int
    type: PublicKeyCredentialType = PublicKeyCredentialType.PUBLIC_KEY


class CredentialDescriptor(msgspec.Struct, frozen=True):
    id: str
    type: PublicKeyCredentialType = PublicKeyCredentialType.PUBLIC_KEY


class AuthenticatorSelection(msgspec.Struct, frozen=True, rename="camel"):
    resident_key: str = "required"
    require_resident_key: bool = True
    user_verification: str = "required"


class CreationOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Options for `navigator.credentials.create()`."""

    rp: RelyingPartyEntity
    user: UserEntity
    challenge: str
    pub_key_cred_params: list[CredentialParameters]
    timeout: int
    exclude_credentials: list[CredentialDescriptor]
    authenticator_selection: AuthenticatorSelection = AuthenticatorSelection()
    attestation: str = "none"


class RequestOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Options for `navigator.credentials.get()`. The browser offers every passkey for the site."""

    challenge: str
    timeout: int
    rp_id: str
    allow_credentials: list[CredentialDescriptor] = []
    user_verification: str = "required"
