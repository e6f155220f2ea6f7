"""Passkeys over HTTP: enrollment, login, step-up, removal and required factors."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest

from builders.auth import EMAIL, Headers, ListAuditEntries, LogIn, enroll_app
from builders.passkeys import (
    ME,
    RP_ID,
    USER_PRESENT,
    WRONG_PASSKEYS,
    Credential,
    PasskeyClient,
    as_headers,
    build_passkey,
    expire_factors,
    forget_failures,
    get_code,
    get_invalid_fields,
    log_in_with_password,
)
from tapgate.auth.passkeys import MAX_PASSKEYS, RelyingParty, find_relying_party
from tapgate.http.api.services import Services
from tapgate_client.schemas.passkeys import decode_binary, encode_binary

Tamper = Callable[[Credential], object]


@pytest.fixture
async def require_factors(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services.authenticator.factors, "is_required", True)


async def test_passkey_logs_in_without_a_password(
    passkeys: PasskeyClient, ada: Headers, list_audit_entries: ListAuditEntries
) -> None:
    options = (await passkeys.start_enrollment(ada)).json()
    assert options["rp"] == {"id": RP_ID, "name": "Tapgate"}
    assert (options["user"]["name"], options["user"]["displayName"]) == (EMAIL, "Administrator")
    assert options["authenticatorSelection"] == {
        "residentKey": "required",
        "requireResidentKey": True,
        "userVerification": "required",
    }
    assert (options["attestation"], options["excludeCredentials"]) == ("none", [])
    passkey = build_passkey()
    created = await passkeys.submit(ada, passkey.create(options), "Work phone")
    assert created.status_code == 201
    record = created.json()
    assert record["id"].startswith("pky_")
    assert (record["name"], record["last_used_at"]) == ("Work phone", None)
    assert len(record.pop("recovery_codes")) == 10
    assert await passkeys.list(ada) == [record]
    (enrolled,) = await list_audit_entries("admin.factor_enrolled")
    assert enrolled["changes"] == {"factor": [None, "passkey"], "name": [None, "Work phone"]}

    request_options = await passkeys.get_options()
    assert request_options["rpId"] == RP_ID
    assert request_options["allowCredentials"] == []
    assert request_options["userVerification"] == "required"
    session = as_headers(await passkeys.log_in(passkey.get(request_options)))
    assert (await passkeys.client.get(ME, headers=session)).json()["email"] == EMAIL
    newest, *_ = await list_audit_entries("admin.login", result="success")
    assert newest["reason"] == "Second factor: passkey"
    assert (await passkeys.list(session))[0]["last_used_at"]
    # The login with the passkey is a recently verified factor.
    assert (await passkeys.start_enrollment(session, None)).status_code == 200


async def test_enrolled_passkey_is_listed_as_a_method_of_the_login(
    passkeys: PasskeyClient, ada: Headers
) -> None:
    await passkeys.enroll(ada)
    missing = await log_in_with_password(passkeys.client)
    assert get_code(missing) == (403, "OTP_REQUIRED")
    assert missing.json()["details"] == {"methods": ["passkey"]}
    excluded = (await passkeys.start_enrollment(ada)).json()["excludeCredentials"]
    assert len(excluded) == 1


async def test_recovery_code_replaces_a_lost_passkey(
    passkeys: PasskeyClient, ada: Headers, list_audit_entries: ListAuditEntries
) -> None:
    options = (await passkeys.start_enrollment(ada)).json()
    first = (await passkeys.submit(ada, build_passkey().create(options))).json()
    codes = first["recovery_codes"]
    logged_in = await log_in_with_password(passkeys.client, otp=codes[0])
    assert logged_in.status_code == 200, logged_in.text
    used = await log_in_with_password(passkeys.client, otp=codes[0])
    assert get_code(used) == (400, "INVALID_OTP")
    me = (await passkeys.client.get(ME, headers=ada)).json()
    assert (me["factors"], me["recovery_codes"]) == (["passkey"], 9)

    options = (await passkeys.start_enrollment(ada)).json()
    second = (await passkeys.submit(ada, build_passkey().create(options))).json()
    assert "recovery_codes" not in second, "the first ones remain"
    replaced = await passkeys.client.post(f"{ME}/recovery-codes", headers=ada)
    new_codes = replaced.json()["recovery_codes"]
    assert len(set(new_codes) - set(codes)) == 10
    assert get_code(await log_in_with_password(passkeys.client, otp=codes[1]))[0] == 400
    (entry,) = await list_audit_entries("admin.recovery_codes_replaced")
    assert not any(code in str(entry) for code in new_codes)

    for record in await passkeys.list(ada):
        assert (await passkeys.remove(ada, record["id"])).status_code == 204
    me = (await passkeys.client.get(ME, headers=ada)).json()
    assert (me["factors"], me["recovery_codes"]) == ([], 0)
    refused = await passkeys.client.post(f"{ME}/recovery-codes", headers=ada)
    assert get_code(refused) == (404, "NOT_FOUND")


async def test_new_recovery_codes_need_a_recent_factor(
    passkeys: PasskeyClient, ada: Headers, services: Services
) -> None:
    await passkeys.enroll(ada)
    await expire_factors(services)
    refused = await passkeys.client.post(f"{ME}/recovery-codes", headers=ada)
    assert get_code(refused) == (403, "OTP_REQUIRED")


async def test_recovery_codes_remain_while_a_passkey_does(
    passkeys: PasskeyClient, ada: Headers, services: Services
) -> None:
    await passkeys.enroll(ada)
    admin_id = await services.database.fetchval("SELECT id FROM admins")
    app = await enroll_app(services, admin_id)
    me = (await passkeys.client.get(ME, headers=ada)).json()
    assert (sorted(me["factors"]), me["recovery_codes"]) == (["passkey", "totp"], 10)
    code = {"code": app.at(services.clock())}
    removed = await passkeys.client.request("DELETE", f"{ME}/totp", json=code, headers=ada)
    assert removed.status_code == 204, removed.text
    me = (await passkeys.client.get(ME, headers=ada)).json()
    assert (me["factors"], me["recovery_codes"]) == (["passkey"], 10)


async def test_first_factor_requires_the_current_password(
    passkeys: PasskeyClient, ada: Headers
) -> None:
    """A stolen session alone must not be able to add a credential that logs in."""
    missing = await passkeys.start_enrollment(ada, None)
    assert get_invalid_fields(missing) == {"current_password"}
    wrong = await passkeys.start_enrollment(ada, "incorrect horse")
    assert get_invalid_fields(wrong) == {"current_password"}
    await passkeys.enroll(ada)
    assert (await passkeys.start_enrollment(ada, None)).status_code == 200


async def test_passkey_of_a_single_sign_on_session_needs_no_password(
    passkeys: PasskeyClient, ada: Headers, services: Services
) -> None:
    """Such an admin has no password, and the passkey does not log in."""
    await services.database.execute("UPDATE sessions SET is_sso = true")
    await services.database.execute(
        "INSERT INTO admin_identities (issuer, subject, admin_id, created_at) "
        "SELECT 'https://id.example.com', 'ada', id, created_at FROM admins"
    )
    async with services.transaction() as tx:
        await services.authenticator.sessions.publish_change(tx)
    passkey = build_passkey()
    options = (await passkeys.start_enrollment(ada, None)).json()
    assert (await passkeys.submit(ada, passkey.create(options))).status_code == 201
    assert get_code(await passkeys.log_in_with(passkey)) == (401, "UNAUTHORIZED")
    await expire_factors(services)
    assert get_code(await passkeys.start_enrollment(ada)) == (403, "OTP_REQUIRED")
    proof = passkey.get(await passkeys.get_options())
    assert (await passkeys.step_up(ada, proof)).status_code == 200


async def test_invalid_new_credential_is_rejected(passkeys: PasskeyClient, ada: Headers) -> None:
    wrong: dict[str, dict[str, Any]] = {
        **WRONG_PASSKEYS,
        "type": {"create_type": "webauthn.get"},
        "algorithm": {"algorithm": -65535},
        "attestation format": {"attestation_format": "unknown"},
        "forged attestation": {
            "attestation_format": "packed",
            "attestation_statement": {"alg": -7, "sig": b"forged"},
        },
        "short credential id": {"id": b"short"},
    }
    for name, fields in wrong.items():
        options = (await passkeys.start_enrollment(ada)).json()
        response = await passkeys.submit(ada, build_passkey(**fields).create(options))
        assert get_invalid_fields(response) == {"credential"}, name
    assert await passkeys.list(ada) == []


async def test_malformed_new_credential_is_rejected(passkeys: PasskeyClient, ada: Headers) -> None:
    def replace(**response: str) -> Tamper:
        return lambda credential: credential["response"].update(response)

    deep_cbor = encode_binary(b"\x81" * 4000)
    cases: list[Tamper] = [
        replace(attestationObject="AAAA"),
        replace(attestationObject=deep_cbor),
        replace(attestationObject=encode_binary(b"\x9b" + b"\x7f" * 8)),
        replace(clientDataJSON=encode_binary(b"[" * 1500)),
        replace(clientDataJSON=encode_binary(b"\xff")),
        replace(clientDataJSON=encode_binary(b"null")),
        lambda credential: credential.update(id="AAAA"),
        lambda credential: credential.update(rawId="AAAA"),
    ]
    for number, tamper in enumerate(cases):
        credential = build_passkey().create((await passkeys.start_enrollment(ada)).json())
        tamper(credential)
        response = await passkeys.submit(ada, credential)
        assert get_invalid_fields(response) == {"credential"}, number

    credential = build_passkey().create((await passkeys.start_enrollment(ada)).json())
    response = await passkeys.submit(ada, {**credential, "rawId": "no base64!"})
    assert get_invalid_fields(response) == {"credential.rawId"}
    assert (await passkeys.submit(ada, {**credential, "type": "password"})).status_code == 422
    large = {**credential, "response": {**credential["response"], "clientDataJSON": "A" * 4000}}
    invalid_fields = get_invalid_fields(await passkeys.submit(ada, large))
    assert invalid_fields == {"credential.response.clientDataJSON"}


async def test_random_bytes_in_credentials_never_cause_a_server_error(
    passkeys: PasskeyClient, ada: Headers, services: Services
) -> None:
    passkey, random = await passkeys.enroll(ada), Random(65)

    def flip(text: str) -> str:
        data = bytearray(decode_binary(text))
        for _ in range(random.randint(1, 3)):
            data[random.randrange(len(data))] = random.randrange(256)
        return encode_binary(bytes(data))

    for _ in range(25):  # within the failure limit per address
        created = build_passkey().create((await passkeys.start_enrollment(ada)).json())
        created["response"]["attestationObject"] = flip(created["response"]["attestationObject"])
        assert (await passkeys.submit(ada, created)).status_code in (201, 422)
        await services.database.execute(
            "DELETE FROM admin_passkeys WHERE credential_id <> $1", passkey.id
        )
        asserted = passkey.get(await passkeys.get_options())
        field = random.choice(["authenticatorData", "clientDataJSON", "signature", "userHandle"])
        asserted["response"][field] = flip(asserted["response"][field])
        assert (await passkeys.log_in(asserted)).status_code in (200, 401)
        await forget_failures(services)


async def test_enrollment_options_work_once_and_in_one_session(
    passkeys: PasskeyClient, ada: Headers, ben: dict[str, Any], log_in: LogIn
) -> None:
    other_session, bens_session = await log_in(), await log_in(ben["email"])
    options = (await passkeys.start_enrollment(ada)).json()
    for headers in (other_session, bens_session):
        response = await passkeys.submit(headers, build_passkey().create(options))
        assert get_invalid_fields(response) == {"credential"}
    assert (await passkeys.submit(ada, build_passkey().create(options))).status_code == 201
    again = await passkeys.submit(ada, build_passkey().create(options))
    assert get_invalid_fields(again) == {"credential"}
    login_options = {**options, "challenge": (await passkeys.get_options())["challenge"]}
    response = await passkeys.submit(ada, build_passkey().create(login_options))
    assert get_invalid_fields(response) == {"credential"}


async def test_credential_is_enrolled_once(
    passkeys: PasskeyClient, ada: Headers, ben: dict[str, Any], log_in: LogIn
) -> None:
    passkey = await passkeys.enroll(ada)
    bens_session = await log_in(ben["email"])
    options = (await passkeys.start_enrollment(bens_session)).json()
    duplicate = await passkeys.submit(bens_session, passkey.create(options))
    assert duplicate.json()["details"]["fields"] == {"credential": "is already enrolled"}


async def test_number_of_passkeys_is_limited(
    passkeys: PasskeyClient, ada: Headers, services: Services
) -> None:
    await passkeys.enroll(ada)
    await services.database.execute(
        """INSERT INTO admin_passkeys
           SELECT id + number, admin_id, credential_id || number::text::bytea, public_key, 0, name,
                  created_at
           FROM admin_passkeys, generate_series(1, $1 - 1) AS number""",
        MAX_PASSKEYS,
    )
    options = (await passkeys.start_enrollment(ada)).json()
    response = await passkeys.submit(ada, build_passkey().create(options))
    assert get_invalid_fields(response) == {"credential"}
    assert len(await passkeys.list(ada)) == MAX_PASSKEYS


async def test_disabled_admin_cannot_log_in_with_a_passkey(
    passkeys: PasskeyClient, ada: Headers, ben: dict[str, Any], log_in: LogIn
) -> None:
    passkey = await passkeys.enroll(await log_in(ben["email"]))
    assert (await passkeys.log_in_with(passkey)).status_code == 200
    path = f"/api/v1/admin/users/{ben['id']}"
    assert (await passkeys.client.post(f"{path}/disable", headers=ada)).status_code == 200
    assert get_code(await passkeys.log_in_with(passkey)) == (401, "UNAUTHORIZED")
    assert (await passkeys.client.post(f"{path}/enable", headers=ada)).status_code == 200
    assert (await passkeys.log_in_with(passkey)).status_code == 200


async def test_resetting_factors_removes_passkeys_and_resetting_the_password_keeps_them(
    passkeys: PasskeyClient, ada: Headers, ben: dict[str, Any], log_in: LogIn
) -> None:
    passkey = await passkeys.enroll(await log_in(ben["email"]))
    path = f"/api/v1/admin/users/{ben['id']}"
    assert (await passkeys.client.post(f"{path}/reset-password", headers=ada)).status_code == 200
    session = as_headers(await passkeys.log_in_with(passkey))
    assert (await passkeys.client.post(f"{path}/reset-factors", headers=ada)).status_code == 200
    assert (await passkeys.client.get(ME, headers=session)).status_code == 401
    assert get_code(await passkeys.log_in_with(passkey)) == (401, "UNAUTHORIZED")


async def test_passkey_verifies_a_session_for_sensitive_actions(
    passkeys: PasskeyClient,
    ada: Headers,
    ben: dict[str, Any],
    services: Services,
    log_in: LogIn,
    list_audit_entries: ListAuditEntries,
) -> None:
    bens_passkey = await passkeys.enroll(await log_in(ben["email"]))
    passkey = await passkeys.enroll(ada)
    await expire_factors(services)
    stale = await passkeys.start_enrollment(ada)
    assert get_code(stale) == (403, "OTP_REQUIRED")
    assert stale.json()["details"] == {"methods": ["passkey"]}

    others = await passkeys.step_up(ada, bens_passkey.get(await passkeys.get_options()))
    assert get_code(others) == (400, "INVALID_OTP")
    copy = msgspec.structs.replace(passkey, flags=USER_PRESENT)
    unverified = await passkeys.step_up(ada, copy.get(await passkeys.get_options()))
    assert get_code(unverified) == (400, "INVALID_OTP")
    (newest, _) = await list_audit_entries("admin.factor_verified", result="failure")
    assert newest["reason"].startswith("Verification failed")
    empty = await passkeys.client.post(f"{ME}/step-up", json={}, headers=ada)
    assert empty.status_code == 400

    options = await passkeys.get_options()
    verified = await passkeys.step_up(ada, passkey.get(options))
    assert verified.json().keys() == {"verified_until"}
    assert (await passkeys.start_enrollment(ada)).status_code == 200
    (entry,) = await list_audit_entries("admin.factor_verified", result="success")
    assert entry["reason"] == "Second factor: passkey"
    assert (await passkeys.log_in(passkey.get(options))).status_code == 401


async def test_passkey_is_removed(
    passkeys: PasskeyClient,
    ada: Headers,
    ben: dict[str, Any],
    services: Services,
    log_in: LogIn,
    list_audit_entries: ListAuditEntries,
) -> None:
    passkey = await passkeys.enroll(ada)
    (record,) = await passkeys.list(ada)
    bens_session = await log_in(ben["email"])
    assert await passkeys.list(bens_session) == []
    assert get_code(await passkeys.remove(bens_session, record["id"])) == (404, "NOT_FOUND")
    await expire_factors(services)
    assert get_code(await passkeys.remove(ada, record["id"])) == (403, "OTP_REQUIRED")
    session = as_headers(await passkeys.log_in_with(passkey))
    assert (await passkeys.remove(session, record["id"])).status_code == 204
    assert get_code(await passkeys.remove(session, record["id"])) == (404, "NOT_FOUND")
    assert get_code(await passkeys.log_in_with(passkey)) == (401, "UNAUTHORIZED")
    assert (await log_in_with_password(passkeys.client)).status_code == 200
    (entry,) = await list_audit_entries("admin.factor_removed")
    assert entry["changes"] == {"factor": ["passkey", None], "name": ["Phone", None]}


@pytest.mark.usefixtures("require_factors")
async def test_passkey_satisfies_a_required_factor(
    passkeys: PasskeyClient, services: Services, ada: Headers
) -> None:
    limited = await log_in_with_password(passkeys.client)
    assert limited.json()["enroll_only"] is True
    headers = as_headers(limited)
    passkey = await passkeys.enroll(headers)
    assert (await passkeys.client.get(f"{ME}/passkeys", headers=headers)).status_code == 403
    tokens = await passkeys.log_in_with(passkey)
    assert "enroll_only" not in tokens.json()
    full = as_headers(tokens)
    (first,) = await passkeys.list(full)
    last = await passkeys.remove(full, first["id"])
    assert get_code(last) == (403, "FORBIDDEN")
    assert (await passkeys.log_in_with(passkey)).status_code == 200

    await passkeys.enroll(full, "Security key")
    ids = [record["id"] for record in await passkeys.list(full)]
    responses = await asyncio.gather(*(passkeys.remove(full, item) for item in ids))
    assert sorted(response.status_code for response in responses) == [204, 403]
    assert len(await passkeys.list(full)) == 1


async def test_passkeys_are_not_accepted_while_factors_are_off(
    passkeys: PasskeyClient, ada: Headers, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    passkey = await passkeys.enroll(ada)
    options = await passkeys.get_options()
    monkeypatch.setattr(services.authenticator.factors, "is_enabled", False)
    assert get_code(await passkeys.log_in(passkey.get(options))) == (403, "FORBIDDEN")
    assert get_code(await passkeys.start_enrollment(ada)) == (403, "FORBIDDEN")
    response = await passkeys.client.post("/api/v1/admin/login/passkey/options")
    assert get_code(response) == (403, "FORBIDDEN")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000", ("localhost", "http://localhost:8000")),
        ("http://[::1]:8000", ("localhost", "http://localhost:8000")),
        ("https://Pay.Example.com", ("pay.example.com", "https://pay.example.com")),
        ("https://pay.example.com:443/tapgate", ("pay.example.com", "https://pay.example.com")),
        ("https://pay.example.com:8443", ("pay.example.com", "https://pay.example.com:8443")),
        ("http://192.0.2.7:8000", None),
    ],
)
def test_relying_party_is_derived_from_the_public_url(
    url: str, expected: tuple[str, str] | None
) -> None:
    assert find_relying_party(url) == (None if expected is None else RelyingParty(*expected))


async def test_passkeys_need_a_domain_name(
    passkeys: PasskeyClient, ada: Headers, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services.authenticator.passkeys, "configured_relying_party", None)
    response = await passkeys.client.post("/api/v1/admin/login/passkey/options")
    assert get_code(response) == (403, "FORBIDDEN")
    assert "TAPGATE_PUBLIC_URL" in response.json()["message"]
    assert get_code(await passkeys.start_enrollment(ada)) == (403, "FORBIDDEN")
