"""Identity provider (OpenID Connect) on localhost that signs the claims a test chooses."""

import asyncio
import base64
import contextlib
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

from tapgate.core.settings.security import OidcSettings

CLIENT_ID = "tapgate"
CLIENT_SECRET = "a client secret with spaces: & %"
ADMIN_GROUP, FINANCE_GROUP = "tapgate-admins", "tapgate-finance"


@cache
def build_key(algorithm: str, number: int = 0) -> Any:
    """Return a private key, the same for the same arguments."""
    if algorithm == "ES256":
        return ec.generate_private_key(ec.SECP256R1())
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(65537, 2048)


def build_jwk(algorithm: str, key: Any, **fields: Any) -> dict[str, Any]:
    jwk = get_default_algorithms()[algorithm].to_jwk(key.public_key(), as_dict=True)
    return {**jwk, "alg": algorithm, "use": "sig", **fields}


class Response(NamedTuple):
    status: int
    body: bytes = b""
    headers: tuple[str, ...] = ()


class FakeProvider:
    """Provider that signs every visitor in as the same person."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._host = host
        self.issuer = ""
        self.algorithm = "RS256"
        self.key: Any = build_key("RS256")
        self.key_id: str | None = "first"
        self.keys = [build_jwk("RS256", self.key, kid="first")]
        #: Claims in addition to the usual ones; None removes a claim, and functions get the time.
        self.claims: dict[str, Any] = {}
        self.token_headers: dict[str, Any] = {}
        #: Replaces the ID token.
        self.id_token: str | None = None
        self.metadata: dict[str, Any] = {}
        #: Responses by path that replace the usual ones.
        self.responses: dict[str, Response] = {}
        #: Request paths, in order.
        self.requests: list[str] = []
        #: Cleared to let requests wait until the server stops.
        self.responds = asyncio.Event()
        self.responds.set()
        self._codes: dict[str, dict[str, str]] = {}

    @property
    def settings(self) -> OidcSettings:
        return OidcSettings(
            issuer=self.issuer,
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            role_claim="groups",
            role_map={ADMIN_GROUP: "system_admin", FINANCE_GROUP: "finance_user"},
            scopes="openid email profile",
        )

    @contextlib.asynccontextmanager
    async def listen(self) -> AsyncIterator["FakeProvider"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.issuer = f"http://{self._host}:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            self.responds.set()
            server.close()
            await server.wait_closed()

    def use_key(self, algorithm: str, key_id: str, number: int = 0) -> None:
        """Sign with another key from now on, and publish only that one."""
        self.algorithm, self.key_id = algorithm, key_id
        self.key = build_key(algorithm, number)
        self.keys = [build_jwk(algorithm, self.key, kid=key_id)]

    def authorize(self, authorization_url: str) -> dict[str, str]:
        """Sign in as the browser does; return the parameters from the redirect to the console."""
        request = dict(parse_qsl(urlsplit(authorization_url).query))
        assert request["response_type"] == "code"
        assert request["client_id"] == CLIENT_ID
        assert "openid" in request["scope"].split()
        code = secrets.token_urlsafe(8)
        self._codes[code] = request
        return {"code": code, "state": request["state"], "iss": self.issuer}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(EOFError, ConnectionError):
            request, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            target = request.split(" ")[1]
            self.requests.append(urlsplit(target).path)
            await self.responds.wait()
            response = self._respond(target, headers, dict(parse_qsl(body.decode())))
            lines = [f"HTTP/1.1 {response.status} X", *response.headers, "Connection: close"]
            lines += [f"Content-Length: {len(response.body)}", "", ""]
            writer.write("\r\n".join(lines).encode() + response.body)
            await writer.drain()

    def _respond(self, target: str, headers: dict[str, str], form: dict[str, str]) -> Response:
        path, query = urlsplit(target).path, dict(parse_qsl(urlsplit(target).query))
        response = self.responses.get(path)
        if response is None:
            match path:
                case "/.well-known/openid-configuration":
                    response = _build_json(self._build_metadata())
                case "/keys":
                    response = _build_json({"keys": self.keys})
                case "/authorize":
                    callback = urlencode(self.authorize(target))
                    response = _redirect(f"{query['redirect_uri']}?{callback}")
                case "/token":
                    response = self._exchange(headers, form)
                case "/logout":
                    response = _redirect(query["post_logout_redirect_uri"])
        return response or Response(404)

    def _build_metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "end_session_endpoint": f"{self.issuer}/logout",
            **self.metadata,
        }

    def _exchange(self, headers: dict[str, str], form: dict[str, str]) -> Response:
        """Exchange a code, which works once and needs the PKCE verifier and the client secret."""
        request = self._codes.pop(form.get("code", ""), None)
        if request is None or not _is_verifier(request, form) or not _is_client(headers, form):
            return _build_json({"error": "invalid_grant"}, 400)
        if form["redirect_uri"] != request["redirect_uri"]:
            return _build_json({"error": "invalid_grant"}, 400)
        token = self.id_token or self.sign(self._build_claims(request))
        return _build_json({"access_token": "access", "token_type": "Bearer", "id_token": token})

    def _build_claims(self, request: dict[str, str]) -> dict[str, Any]:
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "sub": "person-1",
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": request.get("nonce"),
            "email": "grace@example.com",
            "email_verified": True,
            "name": "Grace",
            "groups": [ADMIN_GROUP],
            **({"auth_time": now} if "max_age" in request else {}),
            **self.claims,
        }
        claims = {name: value(now) if callable(value) else value for name, value in claims.items()}
        return {name: value for name, value in claims.items() if value is not None}

    def sign(self, claims: dict[str, Any]) -> str:
        headers = {"kid": self.key_id} if self.key_id else {}
        return jwt.encode(
            claims, self.key, self.algorithm, headers={**headers, **self.token_headers}
        )


def _redirect(url: str) -> Response:
    return Response(302, headers=(f"Location: {url}",))


def _build_json(value: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(value).encode(), ("Content-Type: application/json",))


def _is_verifier(request: dict[str, str], form: dict[str, str]) -> bool:
    digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    return request.get("code_challenge_method") == "S256" and challenge == request["code_challenge"]


def _is_client(headers: dict[str, str], form: dict[str, str]) -> bool:
    if "authorization" not in headers:
        return (form.get("client_id"), form.get("client_secret")) == (CLIENT_ID, CLIENT_SECRET)
    credentials = base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode()
    return [unquote_plus(part) for part in credentials.split(":")] == [CLIENT_ID, CLIENT_SECRET]
