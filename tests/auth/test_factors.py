"""Second factors: TOTP codes, recovery codes, limits on guesses, and step-up."""

import asyncio
from datetime import UTC, datetime

import pyotp
import pytest

from builders.auth import (
    EMAIL,
    PASSWORD,
    SESSION_ID,
    FakeClock,
    GatewayProcess,
    OwnerBuilder,
    catch_api_error,
)
from cases import each
from tapgate.auth import totp
from tapgate_client.errors import Code

ADDRESS = "192.0.2.1"
#: The secret of RFC 6238, appendix B.
RFC_SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"


@pytest.fixture
async def admin_id(owners: OwnerBuilder) -> int:
    return await owners.create_admin()


async def enroll(process: GatewayProcess, admin_id: int) -> tuple[pyotp.TOTP, list[str]]:
    """Enroll an authenticator app and advance the clock past its first code's time step."""
    auth = process.authenticator
    async with process.transaction() as tx:
        app = pyotp.TOTP(await auth.factors.start_totp(tx, admin_id, SESSION_ID))
        code = app.at(process.clock())
        recovery_codes = await auth.factors.confirm_totp(tx, admin_id, SESSION_ID, code)
    assert recovery_codes is not None
    process.clock.advance(seconds=30)
    return app, recovery_codes


async def log_in(process: GatewayProcess, otp: str | None, address: str = ADDRESS) -> str | None:
    """Log in and return the factor that was verified."""
    return (await process.logins.authenticate(EMAIL, PASSWORD, address, otp=otp)).factor


async def get_error(process: GatewayProcess, otp: str | None, address: str = ADDRESS) -> Code:
    return (await catch_api_error(log_in(process, otp, address))).code


@each(
    "seconds, code",
    [
        (59, "94287082"),
        (1111111109, "07081804"),
        (1111111111, "14050471"),
        (1234567890, "89005924"),
        (2000000000, "69279037"),
        (20000000000, "65353130"),
    ],
)
def test_codes_match_rfc_6238(seconds: int, code: str) -> None:
    """The RFC lists codes of eight digits; codes of six digits are their last six."""
    now = datetime.fromtimestamp(seconds, UTC)
    assert totp.find_step(RFC_SECRET, code[2:], now) == seconds // 30
    assert totp.find_step(RFC_SECRET, code[2:], datetime.fromtimestamp(seconds + 60, UTC)) is None


async def test_login_requires_a_code_once_an_app_is_enrolled(
    process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    assert await log_in(process, None) is None
    app, _ = await enroll(process, admin_id)
    error = await catch_api_error(log_in(process, None))
    assert (error.code, error.details) == (Code.OTP_REQUIRED, {"methods": ["totp"]})
    assert await log_in(process, app.at(clock())) == "totp"
    assert await get_error(process, app.at(clock(), 5)) is Code.INVALID_OTP


async def test_missing_code_is_not_counted_as_a_failed_login(
    process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    app, _ = await enroll(process, admin_id)
    for _ in range(10):
        assert await get_error(process, None) is Code.OTP_REQUIRED
    assert await log_in(process, app.at(clock())) == "totp"


async def test_wrong_codes_and_wrong_passwords_share_a_limit(
    process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    app, _ = await enroll(process, admin_id)
    for _ in range(3):
        assert await get_error(process, "000000") is Code.INVALID_OTP
    for _ in range(2):
        await catch_api_error(process.logins.authenticate(EMAIL, "wrong", ADDRESS))
    assert await get_error(process, app.at(clock())) is Code.RATE_LIMITED


async def test_wrong_codes_are_limited_over_all_addresses(
    process: GatewayProcess, other_process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    app, _ = await enroll(process, admin_id)
    guesses = [
        get_error(gateway, "000000", f"192.0.2.{number}")
        for number, gateway in enumerate([process, other_process] * 10)
    ]
    codes = await asyncio.gather(*guesses)
    assert sorted(codes) == [Code.INVALID_OTP] * 5 + [Code.RATE_LIMITED] * 15
    assert await get_error(process, app.at(clock()), "198.51.100.1") is Code.RATE_LIMITED
    clock.advance(minutes=15)
    assert await log_in(process, app.at(clock())) == "totp"


async def test_code_works_once_across_processes(
    process: GatewayProcess, other_process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    app, _ = await enroll(process, admin_id)
    factors = [gateway.authenticator.factors for gateway in (process, other_process)]
    for _ in range(5):
        code = app.at(clock())
        results = await asyncio.gather(*(item.verify(admin_id, code) for item in factors * 4))
        assert sorted(filter(None, results)) == ["totp"]
        clock.advance(seconds=30)


async def test_confirmed_and_earlier_codes_do_not_work_again(
    process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    app, _ = await enroll(process, admin_id)
    factors = process.authenticator.factors
    assert await factors.verify(admin_id, app.at(clock(), -1)) is None
    assert await factors.verify(admin_id, app.at(clock(), 1)) == "totp"
    assert await factors.verify(admin_id, app.at(clock())) is None


async def test_each_recovery_code_works_once(
    process: GatewayProcess, other_process: GatewayProcess, admin_id: int
) -> None:
    _, codes = await enroll(process, admin_id)
    assert len(set(codes)) == 10
    assert await log_in(process, codes[0].upper().replace("-", " ")) == "recovery_code"
    assert await get_error(process, codes[0]) is Code.INVALID_OTP
    factors = [gateway.authenticator.factors for gateway in (process, other_process)]
    results = await asyncio.gather(*(item.verify(admin_id, codes[1]) for item in factors * 4))
    assert [*filter(None, results)] == ["recovery_code"]
    assert await process.authenticator.factors.count_recovery_codes(admin_id) == 8


async def test_secrets_and_recovery_codes_are_not_stored_in_plain_text(
    process: GatewayProcess, admin_id: int
) -> None:
    app, codes = await enroll(process, admin_id)
    rows = [
        *await process.database.fetch("SELECT secret FROM admin_totp"),
        *await process.database.fetch("SELECT code_hash FROM admin_recovery_codes"),
    ]
    stored = b"".join(value for row in rows for value in row.values())
    for text in (app.secret, app.byte_secret(), *(code.replace("-", "") for code in codes)):
        assert (text if isinstance(text, bytes) else text.encode()) not in stored


async def test_new_app_replaces_the_old_one_when_it_is_confirmed(
    process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    old, old_codes = await enroll(process, admin_id)
    factors = process.authenticator.factors
    async with process.transaction() as tx:
        new = pyotp.TOTP(await factors.start_totp(tx, admin_id, SESSION_ID))
        assert await factors.confirm_totp(tx, admin_id, SESSION_ID, old.at(clock())) is None
    assert await factors.verify(admin_id, old.at(clock())) == "totp"
    clock.advance(seconds=60)
    async with process.transaction() as tx:
        assert await factors.confirm_totp(tx, admin_id, SESSION_ID, new.at(clock()))
    clock.advance(seconds=30)
    assert await factors.verify(admin_id, old.at(clock())) is None
    assert await factors.verify(admin_id, old_codes[0]) is None
    assert await factors.verify(admin_id, new.at(clock())) == "totp"


async def test_admin_login_without_a_factor_ignores_the_code(
    process: GatewayProcess, admin_id: int
) -> None:
    result = await process.logins.authenticate(EMAIL, PASSWORD, ADDRESS, otp="000000")
    assert (result.id, result.factor) == (admin_id, None)


def test_qr_code_is_an_svg_data_uri() -> None:
    url = totp.build_url(RFC_SECRET, EMAIL)
    assert url == f"otpauth://totp/Tapgate:ada%40example.com?secret={RFC_SECRET}&issuer=Tapgate"
    assert totp.render_qr(url).startswith("data:image/svg+xml")
