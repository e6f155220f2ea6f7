"""Two-step admin flows: the second step is bound to a session, an age and a protection."""

import asyncio
from datetime import timedelta

import httpx2
import pyotp
import pytest

from builders.auth import EMAIL, PASSWORD, Headers, LogIn, get_previous_code
from builders.passkeys import (
    ME,
    PasskeyClient,
    build_passkey,
    expire_factors,
    get_code,
    get_invalid_fields,
    log_in_with_password,
)
from tapgate.http.api.services import Services
from tapgate_client.errors import ApiError

INVALID_OTP = (400, "INVALID_OTP")
OTP_REQUIRED = (403, "OTP_REQUIRED")


class TotpClient:
    """Enrolls authenticator apps over HTTP."""

    def __init__(self, client: httpx2.AsyncClient, services: Services) -> None:
        self._client = client
        self._services = services

    async def start(self, headers: Headers, **body: str) -> httpx2.Response:
        return await self._client.post(f"{ME}/totp", json=body, headers=headers)

    async def start_app(self, headers: Headers) -> pyotp.TOTP:
        return pyotp.TOTP((await self.start(headers)).json()["secret"])

    async def confirm(self, headers: Headers, app: pyotp.TOTP) -> httpx2.Response:
        body = {"code": get_previous_code(self._services, app)}
        return await self._client.post(f"{ME}/totp/confirm", json=body, headers=headers)

    async def enroll(self, headers: Headers) -> pyotp.TOTP:
        app = await self.start_app(headers)
        assert (await self.confirm(headers, app)).status_code == 200
        return app


@pytest.fixture
def totp(client: httpx2.AsyncClient, services: Services) -> TotpClient:
    return TotpClient(client, services)


async def age_sessions(services: Services, minutes: int) -> None:
    """Make the sessions older."""
    await services.database.execute(
        "UPDATE sessions SET created_at = created_at - make_interval(mins => $1)", minutes
    )
    async with services.transaction() as tx:
        await services.authenticator.sessions.publish_change(tx)


async def get_status(client: httpx2.AsyncClient, headers: Headers) -> int:
    return (await client.get(ME, headers=headers)).status_code


async def test_pending_app_of_a_stolen_session_ends_with_the_first_factor(
    client: httpx2.AsyncClient,
    ada: Headers,
    log_in: LogIn,
    totp: TotpClient,
    passkeys: PasskeyClient,
) -> None:
    stolen = await log_in()
    app = await totp.start_app(stolen)
    await passkeys.enroll(ada)
    assert (await totp.confirm(stolen, app)).status_code == 401
    assert await get_status(client, stolen) == 401
    assert await get_status(client, ada) == 200
    assert get_code(await totp.confirm(ada, app)) == INVALID_OTP
    assert (await client.get(ME, headers=ada)).json()["factors"] == ["passkey"]


async def test_pending_app_ends_when_another_factor_is_enrolled_in_the_same_session(
    ada: Headers, totp: TotpClient, passkeys: PasskeyClient
) -> None:
    app = await totp.start_app(ada)
    await passkeys.enroll(ada)
    assert get_code(await totp.confirm(ada, app)) == INVALID_OTP


async def test_confirming_an_app_needs_a_recent_factor(
    ada: Headers, totp: TotpClient, passkeys: PasskeyClient, services: Services
) -> None:
    await passkeys.enroll(ada)
    app = await totp.start_app(ada)
    await expire_factors(services)
    assert get_code(await totp.confirm(ada, app)) == OTP_REQUIRED


async def test_enrolling_a_passkey_needs_a_recent_factor(
    ada: Headers, passkeys: PasskeyClient, services: Services
) -> None:
    await passkeys.enroll(ada)
    options = (await passkeys.start_enrollment(ada)).json()
    await expire_factors(services)
    assert get_code(await passkeys.submit(ada, build_passkey().create(options))) == OTP_REQUIRED


async def test_pending_app_belongs_to_one_session(
    ada: Headers, log_in: LogIn, totp: TotpClient
) -> None:
    app = await totp.start_app(ada)
    assert get_code(await totp.confirm(await log_in(), app)) == INVALID_OTP
    assert (await totp.confirm(ada, app)).status_code == 200


@pytest.mark.parametrize(("minutes", "status"), [(14, 200), (15, 400)])
async def test_pending_app_expires_after_15_minutes(
    ada: Headers, totp: TotpClient, services: Services, minutes: int, status: int
) -> None:
    app = await totp.start_app(ada)
    await services.database.execute(
        "UPDATE admin_totp SET pending_since = pending_since - $1::interval",
        timedelta(minutes=minutes, seconds=1),
    )
    assert (await totp.confirm(ada, app)).status_code == status


async def test_first_app_ends_the_other_sessions(
    client: httpx2.AsyncClient, ada: Headers, log_in: LogIn, totp: TotpClient, services: Services
) -> None:
    other = await log_in()
    app = await totp.enroll(ada)
    assert [await get_status(client, headers) for headers in (ada, other)] == [200, 401]

    second = await log_in_with_password(client, otp=app.at(services.clock()))
    other = {"Authorization": f"Bearer {second.json()['token']}"}
    await totp.enroll(ada)
    assert [await get_status(client, headers) for headers in (ada, other)] == [200, 200]


async def test_first_app_needs_a_recent_login_or_the_password(
    ada: Headers, totp: TotpClient, services: Services
) -> None:
    assert (await totp.start(ada)).status_code == 200
    await age_sessions(services, minutes=16)
    assert get_invalid_fields(await totp.start(ada)) == {"current_password"}
    wrong = await totp.start(ada, current_password="incorrect horse")
    assert get_invalid_fields(wrong) == {"current_password"}
    started = await totp.start(ada, current_password=PASSWORD)
    assert started.status_code == 200
    confirmed = await totp.confirm(ada, pyotp.TOTP(started.json()["secret"]))
    assert confirmed.status_code == 200


async def test_login_without_a_factor_fails_if_one_is_enrolled_concurrently(
    ada: Headers, totp: TotpClient, services: Services
) -> None:
    """The enrollment cannot end a session that is about to start."""
    auth = services.authenticator
    admin = await auth.logins.authenticate(EMAIL, PASSWORD, "192.0.2.1")
    await totp.enroll(ada)
    with pytest.raises(ApiError) as caught:
        async with services.transaction() as tx:
            await auth.sessions.start(tx, admin.id, password_hash=admin.password_hash)
    assert caught.value.status == 401


async def test_of_two_concurrent_first_factors_one_session_remains(
    client: httpx2.AsyncClient,
    ada: Headers,
    log_in: LogIn,
    totp: TotpClient,
    passkeys: PasskeyClient,
) -> None:
    other = await log_in()
    app = await totp.start_app(other)
    options = (await passkeys.start_enrollment(ada)).json()
    credential = build_passkey().create(options)
    await asyncio.gather(totp.confirm(other, app), passkeys.submit(ada, credential))
    statuses = [await get_status(client, headers) for headers in (ada, other)]
    assert sorted(statuses) == [200, 401]
    me = await client.get(ME, headers=ada if statuses[0] == 200 else other)
    assert me.json()["factors"] == (["passkey"] if statuses[0] == 200 else ["totp"])


async def test_reset_link_of_a_disabled_admin_ends(
    client: httpx2.AsyncClient, ada: Headers, ben: dict[str, str]
) -> None:
    users = f"/api/v1/admin/users/{ben['id']}"
    url = (await client.post(f"{users}/reset-password", headers=ada)).json()["url"]
    assert (await client.post(f"{users}/disable", headers=ada)).status_code == 200
    assert (await client.post(f"{users}/enable", headers=ada)).status_code == 200
    body = {"token": url.partition("#")[2], "password": "another horse battery"}
    accepted = await client.post("/api/v1/admin/invitations/accept", json=body)
    assert get_code(accepted) == (404, "NOT_FOUND")


async def test_password_from_a_link_ends_the_sessions(
    client: httpx2.AsyncClient,
    ada: Headers,
    ben: dict[str, str],
    log_in: LogIn,
    passkeys: PasskeyClient,
) -> None:
    """A passkey works between the reset and the new password."""
    passkey = await passkeys.enroll(await log_in(ben["email"]))
    reset = await client.post(f"/api/v1/admin/users/{ben['id']}/reset-password", headers=ada)
    logged_in = await passkeys.log_in_with(passkey)
    session = {"Authorization": f"Bearer {logged_in.json()['token']}"}
    token = reset.json()["url"].partition("#")[2]
    body = {"token": token, "password": "another horse battery"}
    accepted = await client.post("/api/v1/admin/invitations/accept", json=body)
    assert accepted.status_code == 204, accepted.text
    assert await get_status(client, session) == 401
