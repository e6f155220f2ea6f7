"""Access tokens: exactly five claims, signed with HS256 and the platform's key."""

import base64
import hmac
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tapgate.auth.access_tokens import AccessTokens, VerifiedToken
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code

SECRET = "s" * 32
NOW = datetime(2026, 1, 31, 10, 15, 30, 999_999, tzinfo=UTC)
ACCESS_TOKENS = AccessTokens(SECRET)
TOKEN = VerifiedToken(session_id=7, admin_id=42, expires_at=int(NOW.timestamp()) + 86400)


def make_token(session_id: int = 7) -> str:
    return ACCESS_TOKENS.issue(
        session_id=session_id, admin_id=42, email="ada@example.com", role="system_admin", now=NOW
    )


def forge_token(
    secret: Any = SECRET,
    algorithm: str = "HS256",
    header: dict[str, Any] | None = None,
    **changes: Any,
) -> str:
    """Return a valid token with the given changes; a claim of None is omitted."""
    valid = jwt.decode_complete(make_token(), options={"verify_signature": False})
    claims = {k: v for k, v in (valid["payload"] | changes).items() if v is not None}
    headers = {"sid": valid["header"]["sid"]} | (header or {})
    return jwt.encode(claims, secret, algorithm=algorithm, headers=headers)


def encode_part(value: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(value)).rstrip(b"=").decode()


def get_rejection_message(token: str, now: datetime = NOW) -> str:
    with pytest.raises(ApiError) as caught:
        ACCESS_TOKENS.verify(token, now)
    assert caught.value.code is Code.UNAUTHORIZED
    assert caught.value.message is not None
    return caught.value.message


def test_token_has_exactly_five_claims() -> None:
    claims = jwt.decode(make_token(), SECRET, algorithms=["HS256"], options={"verify_exp": False})
    issued = int(NOW.timestamp())
    assert claims == {
        "sub": ids.encode(ids.ADMIN, 42),
        "email": "ada@example.com",
        "role": "system_admin",
        "iat": issued,
        "exp": issued + 86400,
    }
    assert type(claims["iat"]) is type(claims["exp"]) is int


def test_sessions_started_in_the_same_second_have_different_tokens() -> None:
    assert make_token(session_id=8) != make_token(session_id=7)


def test_valid_token_is_accepted() -> None:
    assert ACCESS_TOKENS.verify(make_token(), NOW) == TOKEN
    assert ACCESS_TOKENS.verify(forge_token(), NOW) == TOKEN


def test_token_expires_after_a_day() -> None:
    issued = NOW.replace(microsecond=0)
    assert ACCESS_TOKENS.verify(make_token(), issued + timedelta(days=1, microseconds=-1)) == TOKEN
    assert "expired" in get_rejection_message(make_token(), issued + timedelta(days=1))


@each("algorithm", ["HS384", "HS512", "none"])
def test_other_algorithm_is_rejected(algorithm: str) -> None:
    secret = "" if algorithm == "none" else SECRET * 2
    assert "signature" in get_rejection_message(forge_token(secret, algorithm))


@each("algorithm", ["None", "NONE", "nOnE", "", " none", None, 0, "HS256\0"])
def test_unsigned_token_is_rejected_for_any_spelling_of_the_algorithm(algorithm: Any) -> None:
    valid_head, claims, signature = make_token().split(".")
    sid = msgspec.json.decode(base64.urlsafe_b64decode(valid_head + "=="))["sid"]
    head = encode_part({"alg": algorithm, "typ": "JWT", "sid": sid})
    for forged in (f"{head}.{claims}.", f"{head}.{claims}", f"{head}.{claims}.{signature}"):
        get_rejection_message(forged)


@each(
    "header",
    [
        {},
        {"kid": "../../../../dev/null"},
        {"kid": "' UNION SELECT 'x"},
        {"jwk": {"kty": "oct", "k": "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg"}},
        {"jku": "http://127.0.0.1:1/keys"},
        {"x5u": "http://127.0.0.1:1/keys"},
        {"b64": False, "crit": ["b64"]},
    ],
)
def test_token_signed_with_another_key_is_rejected(header: dict[str, Any]) -> None:
    """A header that names or contains a key does not select it."""
    for key in ("t" * 32, "\0" * 32):
        get_rejection_message(forge_token(key, header=header))


def test_token_signed_with_an_rsa_key_is_rejected() -> None:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    get_rejection_message(forge_token(private, "RS256"))
    public_pem = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head, claims, _ = make_token().split(".")
    digest = hmac.digest(public_pem, f"{head}.{claims}".encode(), "sha256")
    confused = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert "signature" in get_rejection_message(f"{head}.{claims}.{confused}")


def test_missing_signature_or_signature_of_another_token_is_rejected() -> None:
    head, claims, _ = make_token().split(".")
    other = forge_token(role="support_user").rsplit(".", 1)[1]
    for signature in ("", other):
        assert "signature" in get_rejection_message(f"{head}.{claims}.{signature}")
    for incomplete in (f"{head}.{claims}", f"{head}..{other}", "..", "."):
        get_rejection_message(incomplete)


def test_token_with_the_claims_or_header_of_another_token_is_rejected() -> None:
    ours = make_token().split(".")
    other = forge_token(header={"sid": ids.encode("ses_", 8)}).split(".")
    escalated = forge_token(role="finance_user", sub=ids.encode(ids.ADMIN, 43)).split(".")
    assert "signature" in get_rejection_message(f"{other[0]}.{ours[1]}.{ours[2]}")
    assert "signature" in get_rejection_message(f"{ours[0]}.{escalated[1]}.{ours[2]}")


@given(data=st.data())
def test_token_with_a_changed_character_is_rejected(data: st.DataObject) -> None:
    token = make_token()
    # Exclude the last character, because some of its bits are unused.
    position = data.draw(st.integers(0, len(token) - 2))
    letter = data.draw(st.sampled_from("Aa0-_.{é\x00").filter(lambda x: x != token[position]))
    get_rejection_message(token[:position] + letter + token[position + 1 :])


@each("ending", ["=", "==", "!", ".", "%20", " x", ",", " ", "\n"])
def test_padded_or_truncated_token_is_rejected(ending: str) -> None:
    """A decoder that skips unknown characters would accept many spellings of one token."""
    token = make_token()
    get_rejection_message(token + ending)
    get_rejection_message(token.replace(".", f"{ending}.", 1))
    for length in range(0, len(token), 7):
        get_rejection_message(token[:length])


@each("claim", ["sub", "email", "role", "iat", "exp"])
def test_missing_claim_is_rejected(claim: str) -> None:
    changes: dict[str, Any] = {claim: None}
    get_rejection_message(forge_token(**changes))


@each(
    "changes",
    [
        {"sub": "sub_0000000000001"},
        {"sub": "42"},
        {"exp": "never"},
        {"exp": 1e400},
        {"exp": -1},
        {"exp": "9999999999"},
        {"exp": []},
        {"aud": "another service"},
        {"iat": 1.5},
        {"role": ["system_admin"]},
    ],
)
def test_claim_with_an_invalid_type_or_value_is_rejected(changes: dict[str, Any]) -> None:
    get_rejection_message(forge_token(**changes))


@each("sid", [None, 7, "7", "adm_0000000000007", ["ses_0000000000007"]])
def test_invalid_session_id_is_rejected(sid: Any) -> None:
    get_rejection_message(forge_token(header={"sid": sid}))


@given(st.text())
def test_arbitrary_text_is_rejected_as_unauthorized(text: str) -> None:
    get_rejection_message(text)


@given(header=st.binary(max_size=60), claims=st.binary(max_size=60))
def test_arbitrary_token_parts_are_rejected_as_unauthorized(header: bytes, claims: bytes) -> None:
    parts = (base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (header, claims))
    get_rejection_message(".".join([*parts, "c2ln"]))


@each(
    "header",
    [
        {"alg": {}},
        {"alg": None},
        {"alg": 1},
        {"alg": "HS256", "crit": ["x"]},
        {"alg": "HS256", "kid": 1},
        [],
    ],
)
def test_malformed_header_is_rejected_as_unauthorized(header: Any) -> None:
    get_rejection_message(f"{encode_part(header)}.e30.c2ln")


def test_deeply_nested_header_is_rejected() -> None:
    deep = base64.urlsafe_b64encode(b"[" * 60_000).decode().rstrip("=")
    get_rejection_message(f"{deep}.e30.c2ln")
