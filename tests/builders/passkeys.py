"""Authenticator in software: creates and proves passkeys like a browser with a security key."""

import hashlib
import json
import secrets
from typing import Any, Final

import cbor2
import httpx2
import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from builders.auth import EMAIL, PASSWORD, Headers
from tapgate.http.api.services import Services
from tapgate_client.schemas.passkeys import decode_binary, encode_binary

ME: Final = "/api/v1/admin/me"
LOGIN: Final = "/api/v1/admin/login/passkey"
#: Of the public URL in the tests, `http://127.0.0.1:8000`.
RP_ID: Final = "localhost"
ORIGIN: Final = "http://localhost:8000"

USER_PRESENT: Final = 0x01
USER_VERIFIED: Final = 0x04
_ATTESTED_DATA: Final = 0x40
_ES256: Final = -7

Credential = dict[str, Any]


class Passkey(msgspec.Struct, kw_only=True):
    """Passkey from a software authenticator. Tests change fields to make it misbehave."""

    key: ec.EllipticCurvePrivateKey
    id: bytes = msgspec.field(default_factory=lambda: secrets.token_bytes(32))
    user_handle: bytes | None = b""
    sign_count: int = 0
    rp_id: str = RP_ID
    origin: str = ORIGIN
    flags: int = USER_PRESENT | USER_VERIFIED
    create_type: str = "webauthn.create"
    get_type: str = "webauthn.get"
    client_data: dict[str, Any] = {}
    attestation_format: str = "none"
    attestation_statement: dict[str, Any] = {}
    algorithm: int = _ES256

    def create(self, options: Credential) -> Credential:
        """Return the credential that `navigator.credentials.create()` returns."""
        self.user_handle = decode_binary(options["user"]["id"])
        numbers = self.key.public_key().public_numbers()
        public_key = {
            1: 2,
            3: self.algorithm,
            -1: 1,
            -2: numbers.x.to_bytes(32, "big"),
            -3: numbers.y.to_bytes(32, "big"),
        }
        attested = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + cbor2.dumps(public_key)
        attestation = {
            "fmt": self.attestation_format,
            "attStmt": self.attestation_statement,
            "authData": self._build_authenticator_data(_ATTESTED_DATA) + attested,
        }
        return self._build_credential(
            clientDataJSON=self._build_client_data(self.create_type, options),
            attestationObject=cbor2.dumps(attestation),
            transports=["internal"],
        )

    def get(self, options: Credential) -> Credential:
        """Return the credential that `navigator.credentials.get()` returns."""
        client_data = self._build_client_data(self.get_type, options)
        data = self._build_authenticator_data()
        signed = data + hashlib.sha256(client_data).digest()
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        return self._build_credential(
            clientDataJSON=client_data,
            authenticatorData=data,
            signature=signature,
            userHandle=self.user_handle,
        )

    def _build_authenticator_data(self, flags: int = 0) -> bytes:
        rp_id_hash = hashlib.sha256(self.rp_id.encode()).digest()
        return rp_id_hash + bytes([self.flags | flags]) + self.sign_count.to_bytes(4, "big")

    def _build_client_data(self, kind: str, options: Credential) -> bytes:
        fields = {"type": kind, "challenge": options["challenge"], "origin": self.origin}
        return json.dumps({**fields, "crossOrigin": False, **self.client_data}).encode()

    def _build_credential(self, **response: Any) -> Credential:
        encoded = {
            name: encode_binary(value) if isinstance(value, bytes) else value
            for name, value in response.items()
        }
        credential_id = encode_binary(self.id)
        return {
            "id": credential_id,
            "rawId": credential_id,
            "type": "public-key",
            "authenticatorAttachment": "platform",
            "clientExtensionResults": {},
            "response": encoded,
        }


def build_passkey(**fields: Any) -> Passkey:
    return Passkey(key=ec.generate_private_key(ec.SECP256R1()), **fields)


class PasskeyClient:
    """Enrolls and proves passkeys over HTTP."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client

    async def start_enrollment(
        self, headers: Headers, password: str | None = PASSWORD
    ) -> httpx2.Response:
        body = {} if password is None else {"current_password": password}
        return await self.client.post(f"{ME}/passkeys/options", json=body, headers=headers)

    async def submit(
        self, headers: Headers, credential: Credential, name: str = "Phone"
    ) -> httpx2.Response:
        body = {"name": name, "credential": credential}
        return await self.client.post(f"{ME}/passkeys", json=body, headers=headers)

    async def enroll(self, headers: Headers, name: str = "Phone", **fields: Any) -> Passkey:
        passkey = build_passkey(**fields)
        options = (await self.start_enrollment(headers)).json()
        response = await self.submit(headers, passkey.create(options), name)
        assert response.status_code == 201, response.text
        return passkey

    async def list(self, headers: Headers) -> list[dict[str, Any]]:
        response = await self.client.get(f"{ME}/passkeys", headers=headers)
        data: list[dict[str, Any]] = response.json()["data"]
        return data

    async def remove(self, headers: Headers, passkey_id: str) -> httpx2.Response:
        return await self.client.delete(f"{ME}/passkeys/{passkey_id}", headers=headers)

    async def get_options(self) -> Credential:
        options: Credential = (await self.client.post(f"{LOGIN}/options")).json()
        return options

    async def log_in(self, credential: Credential) -> httpx2.Response:
        return await self.client.post(LOGIN, json={"credential": credential})

    async def log_in_with(self, passkey: Passkey) -> httpx2.Response:
        return await self.log_in(passkey.get(await self.get_options()))

    async def step_up(self, headers: Headers, credential: Credential) -> httpx2.Response:
        return await self.client.post(
            f"{ME}/step-up", json={"passkey": credential}, headers=headers
        )


#: What a misbehaving authenticator or another site sends instead.
WRONG_PASSKEYS: dict[str, dict[str, Any]] = {
    "origin": {"origin": "https://evil.example"},
    "origin with another port": {"origin": "http://localhost:8001"},
    "origin with another scheme": {"origin": "https://localhost:8000"},
    "frame of another site": {"client_data": {"crossOrigin": True}},
    "rp id": {"rp_id": "evil.example"},
    "no flags": {"flags": 0},
    "user not present": {"flags": USER_VERIFIED},
    "user not verified": {"flags": USER_PRESENT},
    "challenge that was never issued": {"client_data": {"challenge": encode_binary(bytes(56))}},
    "short challenge": {"client_data": {"challenge": "AAAA"}},
    "no challenge": {"client_data": {"challenge": ""}},
    "challenge of another type": {"client_data": {"challenge": 5}},
}


def get_code(response: httpx2.Response) -> tuple[int, str | None]:
    return response.status_code, response.json().get("code") if response.content else None


def get_invalid_fields(response: httpx2.Response) -> set[str]:
    assert response.status_code == 422, response.text
    return set(response.json()["details"]["fields"])


def as_headers(response: httpx2.Response) -> Headers:
    assert response.status_code == 200, response.text
    return {"Authorization": f"Bearer {response.json()['token']}"}


async def log_in_with_password(
    client: httpx2.AsyncClient, email: str = EMAIL, **fields: str
) -> httpx2.Response:
    body = {"email": email, "password": PASSWORD, **fields}
    return await client.post("/api/v1/admin/login", json=body)


async def forget_failures(services: Services) -> None:
    """Reset the limit on failed logins, so that a test can try more wrong credentials."""
    await services.database.execute("DELETE FROM login_failures")


async def expire_factors(services: Services) -> None:
    await services.database.execute(
        "UPDATE sessions SET factor_at = factor_at - interval '15 minutes 1 second'"
    )
    async with services.transaction() as tx:
        await services.authenticator.sessions.publish_change(tx)
