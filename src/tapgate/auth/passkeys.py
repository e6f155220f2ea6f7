"""Admin passkeys (WebAuthn): enrollment and verification.

A passkey must be discoverable and verify its user, by the device's PIN or biometrics. It is
therefore two factors, and logs in without a password.
"""

import asyncio
from importlib import import_module
from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import asyncpg
import msgspec

from tapgate.auth.passkey_challenges import CHALLENGE_LIFETIME, PasskeyChallenges
from tapgate.core.vault import Vault
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.clock import Clock
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.passkeys import (
    AssertedCredential,
    AttestedCredential,
    CreationOptions,
    CredentialDescriptor,
    CredentialParameters,
    RelyingPartyEntity,
    RequestOptions,
    UserEntity,
    decode_binary,
    encode_binary,
)

MAX_PASSKEYS: Final = 20  # per admin

_SITE_NAME: Final = "Tapgate"
#: COSE identifiers for ES256, EdDSA and RS256.
_ALGORITHMS: Final = (-7, -8, -257)
_MAX_PUBLIC_KEY_BYTES: Final = 600  # a 4,096-bit RSA key
_MIN_CREDENTIAL_ID_BYTES: Final = 16
_TIMEOUT_MS: Final = int(CHALLENGE_LIFETIME.total_seconds()) * 1000
#: Challenge purpose for login and step-up.
_AUTHENTICATION: Final = b"authenticate"


class RelyingParty(NamedTuple):
    """Site for which passkeys are valid: its domain, and the only origin that may use them."""

    id: str
    origin: str


class VerifiedCredential(NamedTuple):
    """New credential whose attestation is valid."""

    id: bytes
    public_key: bytes
    sign_count: int


class InvalidPasskeyError(Exception):
    """The credential is invalid. The reason is for the audit log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _ClientData(msgspec.Struct, rename="camel"):
    challenge: str
    origin: str
    cross_origin: bool = False


class Passkeys:
    def __init__(self, database: Database, vault: Vault, clock: Clock, *, public_url: str) -> None:
        self._database = database
        self._challenges = PasskeyChallenges(database, vault, clock)
        self._clock = clock
        self.configured_relying_party = find_relying_party(public_url)

    @property
    def relying_party(self) -> RelyingParty:
        if self.configured_relying_party is None:
            raise ApiError(
                Code.FORBIDDEN,
                "Passkeys need a domain name. Set TAPGATE_PUBLIC_URL to this site's address.",
                details={"required": ["domain_name"]},
            )
        return self.configured_relying_party

    async def build_creation_options(
        self, admin: asyncpg.Record, session_id: int
    ) -> CreationOptions:
        """Return the options with which this session's browser creates a passkey."""
        rows = await self.list_by_admin(self._database, admin["id"])
        return CreationOptions(
            rp=RelyingPartyEntity(self.relying_party.id, _SITE_NAME),
            user=UserEntity(
                encode_binary(_build_user_handle(admin["id"])), admin["email"], admin["name"]
            ),
            challenge=encode_binary(
                self._challenges.create(_build_enrollment_purpose(admin["id"], session_id))
            ),
            pub_key_cred_params=[CredentialParameters(alg) for alg in _ALGORITHMS],
            timeout=_TIMEOUT_MS,
            # An authenticator replaces the same user's passkey instead of adding one.
            exclude_credentials=[
                CredentialDescriptor(encode_binary(row["credential_id"])) for row in rows
            ],
        )

    def build_request_options(self) -> RequestOptions:
        """Return the options with which a browser proves any of this site's passkeys."""
        return RequestOptions(
            challenge=encode_binary(self._challenges.create(_AUTHENTICATION)),
            timeout=_TIMEOUT_MS,
            rp_id=self.relying_party.id,
        )

    async def verify_new(
        self, admin_id: int, session_id: int, credential: AttestedCredential
    ) -> VerifiedCredential:
        """Verify a new credential and use up its challenge; raise InvalidPasskeyError."""
        await _import_webauthn()
        from webauthn import helpers, verify_registration_response  # noqa: PLC0415
        from webauthn.helpers.cose import COSEAlgorithmIdentifier  # noqa: PLC0415

        purpose = _build_enrollment_purpose(admin_id, session_id)
        challenge = await self._consume_challenge(credential.response.client_data_json, purpose)
        try:
            verified = verify_registration_response(
                credential=msgspec.to_builtins(credential),
                expected_challenge=challenge,
                expected_rp_id=self.relying_party.id,
                expected_origin=self.relying_party.origin,
                require_user_verification=True,
                supported_pub_key_algs=[*map(COSEAlgorithmIdentifier, _ALGORITHMS)],
            )
            key = verified.credential_public_key
            helpers.decoded_public_key_to_cryptography(helpers.decode_credential_public_key(key))
        except Exception as error:  # malformed input raises errors of many kinds
            raise InvalidPasskeyError(_describe(error)) from None
        if len(key) > _MAX_PUBLIC_KEY_BYTES:
            raise InvalidPasskeyError("Public key too large")
        if (
            verified.credential_id != decode_binary(credential.raw_id)
            or len(verified.credential_id) < _MIN_CREDENTIAL_ID_BYTES
        ):
            raise InvalidPasskeyError("Invalid credential ID")
        return VerifiedCredential(verified.credential_id, key, verified.sign_count)

    async def add(
        self, tx: Transaction, admin_id: int, name: str, verified: VerifiedCredential
    ) -> asyncpg.Record | None:
        """Store a passkey, or return None if the credential is already enrolled."""
        return await tx.fetchrow(
            """INSERT INTO admin_passkeys
                   (id, admin_id, credential_id, public_key, sign_count, name, created_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7)
               ON CONFLICT ON CONSTRAINT one_passkey_per_credential DO NOTHING
               RETURNING id, name, created_at, last_used_at""",
            tx.new_id(),
            admin_id,
            verified.id,
            verified.public_key,
            verified.sign_count,
            name,
            tx.now(),
        )

    async def list_by_admin(
        self, source: Database | Transaction, admin_id: int
    ) -> list[asyncpg.Record]:
        """Return an admin's passkeys, at most `MAX_PASSKEYS`, newest first."""
        rows: list[asyncpg.Record] = await source.fetch(
            """SELECT id, name, created_at, last_used_at, credential_id FROM admin_passkeys
               WHERE admin_id = $1 ORDER BY id DESC""",
            admin_id,
        )
        return rows

    async def remove(self, tx: Transaction, admin_id: int, passkey_id: int) -> str | None:
        """Delete a passkey and return its name, or None if the admin has no such passkey."""
        name: str | None = await tx.fetchval(
            "DELETE FROM admin_passkeys WHERE id = $1 AND admin_id = $2 RETURNING name",
            passkey_id,
            admin_id,
        )
        return name

    async def find(self, credential: AssertedCredential) -> asyncpg.Record | None:
        """Return the passkey that a credential claims to be, with its admin, or None."""
        return await self._database.fetchrow(
            """SELECT admin_passkeys.id, admin_id, public_key, email, status
               FROM admin_passkeys JOIN admins ON admins.id = admin_id WHERE credential_id = $1""",
            decode_binary(credential.raw_id),
        )

    async def verify(self, passkey: asyncpg.Record, credential: AssertedCredential) -> None:
        """Verify a passkey's proof and use up its challenge; raise InvalidPasskeyError."""
        await _import_webauthn()
        from webauthn import verify_authentication_response  # noqa: PLC0415

        challenge = await self._consume_challenge(
            credential.response.client_data_json, _AUTHENTICATION
        )
        handle = credential.response.user_handle
        if handle is None or decode_binary(handle) != _build_user_handle(passkey["admin_id"]):
            raise InvalidPasskeyError("The passkey belongs to another user")
        try:
            verified = verify_authentication_response(
                credential=msgspec.to_builtins(credential),
                expected_challenge=challenge,
                expected_rp_id=self.relying_party.id,
                expected_origin=self.relying_party.origin,
                credential_public_key=passkey["public_key"],
                credential_current_sign_count=0,  # compared below, once the signature is valid
                require_user_verification=True,
            )
        except Exception as error:  # malformed input raises errors of many kinds
            raise InvalidPasskeyError(_describe(error)) from None
        await self._advance_sign_count(passkey["id"], verified.new_sign_count)

    async def _advance_sign_count(self, passkey_id: int, sign_count: int) -> None:
        """Store a passkey's counter; raise if it did not increase.

        Authenticators without a counter, such as phones that sync passkeys, always send 0.
        """
        advanced = await self._database.fetchval(
            """UPDATE admin_passkeys SET sign_count = $2, last_used_at = $3
               WHERE id = $1 AND (sign_count < $2 OR (sign_count = 0 AND $2 = 0)) RETURNING true""",
            passkey_id,
            sign_count,
            self._clock(),
        )
        if not advanced:
            raise InvalidPasskeyError("Sign count did not increase: the passkey may be a copy")

    async def _consume_challenge(self, client_data_json: str, purpose: bytes) -> bytes:
        """Return the challenge that a credential signs, once."""
        try:
            client_data = msgspec.json.decode(decode_binary(client_data_json), type=_ClientData)
            challenge = decode_binary(client_data.challenge)
        except ValueError:
            raise InvalidPasskeyError("Malformed client data") from None
        if client_data.origin != self.relying_party.origin or client_data.cross_origin:
            raise InvalidPasskeyError("Used on another site")
        if not await self._challenges.consume(challenge, purpose):
            raise InvalidPasskeyError("Challenge expired, already used, or not issued here")
        return challenge


def find_relying_party(public_url: str) -> RelyingParty | None:
    """Return the relying party for a public URL, or None if its host is an IP address.

    Browsers do not allow passkeys for IP addresses. A loopback address, the default in development,
    is replaced by `localhost`.
    """
    parts = urlsplit(public_url)
    host = parts.hostname or ""
    try:
        address = ip_address(host)
    except ValueError:
        pass
    else:
        if not address.is_loopback:
            return None
        host = "localhost"
    default_port = {"http": 80, "https": 443}[parts.scheme]
    port = "" if parts.port in (None, default_port) else f":{parts.port}"
    return RelyingParty(host, f"{parts.scheme}://{host}{port}")


def _build_user_handle(admin_id: int) -> bytes:
    return admin_id.to_bytes(8, "big")


def _build_enrollment_purpose(admin_id: int, session_id: int) -> bytes:
    return b"enroll %d %d" % (admin_id, session_id)


def _describe(error: Exception) -> str:
    """Return an error's kind. Its message may contain input."""
    return f"Verification failed: {type(error).__name__}"


async def _import_webauthn() -> None:
    """Import the library in a thread, so that requests in progress continue.

    Few processes need it, and importing it takes an eighth of the startup time.
    """
    await asyncio.to_thread(import_module, "webauthn")
