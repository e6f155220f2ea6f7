"""A successful call of every operation with which an owner's user changes something."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import httpx2
import pyotp

from builders.auth import get_previous_code
from builders.disputes import DisputeDriver
from builders.float_requests import create_float_request
from builders.passkeys import PasskeyClient, build_passkey
from builders.payments import new_request_id
from builders.payouts import build_bank_account, create_bank_account, fund_owner
from harness import BearerAuth, Harness, HmacAuth
from tapgate.http.api.owner_access import OWNER_ROLES_BY_LETTER

V1 = "/api/v1"
ME: Final = f"{V1}/admin/me"
WEBHOOKS: Final = f"{V1}/admin/webhook-endpoints"
PASSWORD: Final = "market day in kissy 7"
_NEW_PASSWORD: Final = "another market day in kissy 8"


class OwnerStage:
    """One owner's user, and the records that one operation needs."""

    def __init__(self, harness: Harness, role: str, owner_id: str) -> None:
        self.harness = harness
        self.role = role
        self.owner_id = owner_id
        self.auth = BearerAuth("", "")
        self.email = f"musa{harness.new_phone_number()[1:]}@example.com"

    async def create_user(self) -> None:
        """Create the user with a password, and sign in over HTTP."""
        body = {
            "email": self.email,
            "name": "Musa",
            "role": OWNER_ROLES_BY_LETTER[self.role],
            "owner_id": self.owner_id,
            "password": PASSWORD,
        }
        created = await self.harness.post(
            f"{V1}/admin/users", json=body, auth=await self.harness.create_admin()
        )
        assert created.status_code == 201, created.text
        self.auth = BearerAuth((await self.sign_in()).json()["token"], created.json()["id"])

    async def sign_in(self) -> httpx2.Response:
        body = {"email": self.email, "password": PASSWORD}
        response = await self.harness.post(f"{V1}/admin/login", json=body)
        assert response.status_code == 200, response.text
        return response

    async def send(self, method: str, path: str, **body: Any) -> httpx2.Response:
        return await self.harness.client.request(
            method, path, json=body if body else None, auth=self.auth
        )

    async def prepare(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        """Send a request that must succeed; its audit entries are not the ones checked."""
        response = await self.send(method, path, **body)
        assert response.is_success, response.text
        record: dict[str, Any] = response.json() if response.content else {}
        return record

    @property
    def actor(self) -> dict[str, str]:
        """What an audit entry says about the user."""
        role = OWNER_ROLES_BY_LETTER[self.role]
        user = {"type": "admin", "id": self.auth.id, "name": "Musa", "role": role}
        return {**user, "owner_id": self.owner_id}

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.auth.credential}"}

    @property
    def keys_path(self) -> str:
        prefix = "processors" if self.role == "M" else "admin/partners"
        return f"{V1}/{prefix}/{self.owner_id}/keys"

    async def create_pos(self) -> DisputeDriver:
        """Return a driver that pays at the owner's shop."""
        driver = await DisputeDriver.create(self.harness)
        driver.merchant_auth = await self._create_signing_key()
        return driver

    async def _create_signing_key(self) -> HmacAuth:
        admin = await self.harness.create_admin()
        created = await self.harness.post(f"{V1}/processors/{self.owner_id}/keys", auth=admin)
        assert created.status_code == 201, created.text
        return HmacAuth(created.json()["api_key_id"], created.json()["hmac_secret"])

    async def enroll_app(self) -> tuple[pyotp.TOTP, dict[str, Any]]:
        started = await self.prepare("POST", f"{ME}/totp", current_password=PASSWORD)
        app = pyotp.TOTP(started["secret"])
        code = get_previous_code(self.harness.services, app)
        return app, await self.prepare("POST", f"{ME}/totp/confirm", code=code)


Act = Callable[[OwnerStage], Awaitable[httpx2.Response]]
#: By operation.
ACTS: dict[str, Act] = {}


def act(name: str) -> Callable[[Act], Act]:
    """Register the function that calls an operation successfully."""

    def add(function: Act) -> Act:
        ACTS[name] = function
        return function

    return add


@act("POST /api/v1/processors/{id}/terminals")
async def add_terminal(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("POST", f"{V1}/processors/{stage.owner_id}/terminals", name="Till")


async def _create_terminal(stage: OwnerStage) -> str:
    path = f"{V1}/processors/{stage.owner_id}/terminals"
    created = await stage.prepare("POST", path, name="Till")
    return f"{path}/{created['terminal']['id']}"


@act("POST /api/v1/processors/{id}/terminals/{terminal_id}/block")
async def block_terminal(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("POST", f"{await _create_terminal(stage)}/block")


@act("POST /api/v1/processors/{id}/terminals/{terminal_id}/unblock")
async def unblock_terminal(stage: OwnerStage) -> httpx2.Response:
    path = await _create_terminal(stage)
    await stage.prepare("POST", f"{path}/block")
    return await stage.send("POST", f"{path}/unblock")


@act("POST /api/v1/admin/partners/{id}/keys")
@act("POST /api/v1/processors/{id}/keys")
async def create_signing_key(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("POST", stage.keys_path)


@act("DELETE /api/v1/admin/partners/{id}/keys/{api_key_id}")
@act("DELETE /api/v1/processors/{id}/keys/{api_key_id}")
async def delete_signing_key(stage: OwnerStage) -> httpx2.Response:
    created = await stage.prepare("POST", stage.keys_path)
    return await stage.send("DELETE", f"{stage.keys_path}/{created['api_key_id']}")


@act("POST /api/v1/agents/{id}/float-requests")
async def request_float(stage: OwnerStage) -> httpx2.Response:
    path = f"{V1}/agents/{stage.owner_id}/float-requests"
    return await stage.send("POST", path, amount="50")


@act("POST /api/v1/float-requests/{id}/cancel")
async def cancel_float_request(stage: OwnerStage) -> httpx2.Response:
    item = await create_float_request(stage.harness, {"id": stage.owner_id})
    return await stage.send("POST", f"{V1}/float-requests/{item['id']}/cancel")


@act("POST /api/v1/transactions/{id}/refund")
async def refund(stage: OwnerStage) -> httpx2.Response:
    payment = await (await stage.create_pos()).create_payment("20.00")
    body = {"request_id": new_request_id(), "reason": "returned goods"}
    return await stage.send("POST", f"{V1}/transactions/{payment}/refund", **body)


@act("POST /api/v1/disputes/{id}/respond")
async def respond(stage: OwnerStage) -> httpx2.Response:
    dispute = await (await stage.create_pos()).create_dispute("30.00")
    path = f"{V1}/disputes/{dispute['id']}/respond"
    return await stage.send("POST", path, text="Sorry", accept=True)


@act("POST /api/v1/bank-accounts")
async def add_bank_account(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("POST", f"{V1}/bank-accounts", **build_bank_account(stage.owner_id))


@act("POST /api/v1/payouts")
async def request_payout(stage: OwnerStage) -> httpx2.Response:
    await fund_owner(stage.harness, stage.owner_id, "90")
    await create_bank_account(stage.harness, stage.owner_id)
    return await stage.send("POST", f"{V1}/payouts", owner_id=stage.owner_id, amount="10")


@act("PUT /api/v1/processors/{id}/payout-schedule")
async def set_schedule(stage: OwnerStage) -> httpx2.Response:
    path = f"{V1}/processors/{stage.owner_id}/payout-schedule"
    schedule = await stage.prepare("GET", path)
    return await stage.send("PUT", path, **(schedule | {"interval": "weekly"}))


async def _invite(stage: OwnerStage) -> str:
    body = {"name": "Isata", "role": "merchant_cashier", "owner_id": stage.owner_id}
    email = f"isata{stage.harness.new_phone_number()[1:]}@example.com"
    created = await stage.prepare("POST", f"{V1}/admin/users", email=email, **body)
    return f"{V1}/admin/users/{created['id']}"


@act("POST /api/v1/admin/users")
async def invite(stage: OwnerStage) -> httpx2.Response:
    body = {"name": "Isata", "role": "merchant_cashier", "owner_id": stage.owner_id}
    email = f"isata{stage.harness.new_phone_number()[1:]}@example.com"
    return await stage.send("POST", f"{V1}/admin/users", email=email, **body)


@act("POST /api/v1/admin/users/{id}/disable")
async def disable_user(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("POST", f"{await _invite(stage)}/disable")


@act("POST /api/v1/admin/users/{id}/enable")
async def enable_user(stage: OwnerStage) -> httpx2.Response:
    path = await _invite(stage)
    await stage.prepare("POST", f"{path}/disable")
    return await stage.send("POST", f"{path}/enable")


SUPPORT: Final = f"{V1}/support"


@act("POST /api/v1/support/owner-requests")
async def ask_support(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("POST", f"{SUPPORT}/owner-requests", text="Why?")


@act("POST /api/v1/support/requests/{id}/messages")
async def add_support_message(stage: OwnerStage) -> httpx2.Response:
    asked = await stage.prepare("POST", f"{SUPPORT}/owner-requests", text="Why?")
    return await stage.send("POST", f"{SUPPORT}/requests/{asked['id']}/messages", text="When?")


_WEBHOOK: Final = {"url": "http://127.0.0.1:9/hook", "events": ["*"]}


async def _create_webhook(stage: OwnerStage) -> str:
    return f"{WEBHOOKS}/{(await stage.prepare('POST', WEBHOOKS, **_WEBHOOK))['id']}"


@act("POST /api/v1/admin/webhook-endpoints")
async def create_webhook(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("POST", WEBHOOKS, **_WEBHOOK)


@act("PUT /api/v1/admin/webhook-endpoints/{id}")
async def pause_webhook(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("PUT", await _create_webhook(stage), status="paused")


@act("POST /api/v1/admin/webhook-endpoints/{id}/rotate-secret")
async def rotate_webhook_secret(stage: OwnerStage) -> httpx2.Response:
    path = await _create_webhook(stage)
    return await stage.send("POST", f"{path}/rotate-secret", grace_seconds=0)


@act("POST /api/v1/admin/webhook-endpoints/{id}/test")
async def send_test_event(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("POST", f"{await _create_webhook(stage)}/test")


@act("DELETE /api/v1/admin/webhook-endpoints/{id}")
async def delete_webhook(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("DELETE", await _create_webhook(stage))


_PERIOD: Final = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-31T00:00:00Z"}


async def _fail_delivery(stage: OwnerStage) -> tuple[str, str]:
    path = await _create_webhook(stage)
    delivery = await stage.prepare("POST", f"{path}/test")
    await stage.harness.database.execute(
        "UPDATE deliveries SET status = 'failed', next_attempt_at = NULL, ended_at = now()"
    )
    return path, delivery["id"]


@act("POST /api/v1/admin/webhook-endpoints/{id}/deliveries/{delivery_id}/redeliver")
async def redeliver(stage: OwnerStage) -> httpx2.Response:
    path, delivery = await _fail_delivery(stage)
    return await stage.send("POST", f"{path}/deliveries/{delivery}/redeliver")


@act("POST /api/v1/admin/webhook-endpoints/{id}/redeliver")
async def redeliver_all(stage: OwnerStage) -> httpx2.Response:
    path, _ = await _fail_delivery(stage)
    return await stage.send("POST", f"{path}/redeliver", **_PERIOD)


@act("POST /api/v1/admin/logout")
async def sign_out(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("POST", f"{V1}/admin/logout")


@act("POST /api/v1/admin/me/totp")
async def start_totp(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("POST", f"{ME}/totp", current_password=PASSWORD)


@act("POST /api/v1/admin/me/totp/confirm")
async def confirm_totp(stage: OwnerStage) -> httpx2.Response:
    started = await stage.prepare("POST", f"{ME}/totp", current_password=PASSWORD)
    code = get_previous_code(stage.harness.services, pyotp.TOTP(started["secret"]))
    return await stage.send("POST", f"{ME}/totp/confirm", code=code)


@act("DELETE /api/v1/admin/me/totp")
async def remove_totp(stage: OwnerStage) -> httpx2.Response:
    app, _ = await stage.enroll_app()
    return await stage.send("DELETE", f"{ME}/totp", code=app.at(stage.harness.services.clock()))


@act("POST /api/v1/admin/me/recovery-codes")
async def replace_recovery_codes(stage: OwnerStage) -> httpx2.Response:
    await stage.enroll_app()
    return await stage.send("POST", f"{ME}/recovery-codes")


@act("POST /api/v1/admin/me/step-up")
async def step_up(stage: OwnerStage) -> httpx2.Response:
    app, _ = await stage.enroll_app()
    code = app.at(stage.harness.services.clock())
    return await stage.send("POST", f"{ME}/step-up", otp=code)


@act("POST /api/v1/admin/me/password")
async def change_password(stage: OwnerStage) -> httpx2.Response:
    passwords = {"current_password": PASSWORD, "new_password": _NEW_PASSWORD}
    return await stage.send("POST", f"{ME}/password", **passwords)


@act("PUT /api/v1/admin/me/preferences")
async def set_preferences(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("PUT", f"{ME}/preferences", language="fr")


@act("DELETE /api/v1/admin/me/sessions")
async def end_other_sessions(stage: OwnerStage) -> httpx2.Response:
    await stage.sign_in()
    return await stage.send("DELETE", f"{ME}/sessions")


@act("DELETE /api/v1/admin/me/sessions/{id}")
async def end_session(stage: OwnerStage) -> httpx2.Response:
    await stage.sign_in()
    sessions = (await stage.prepare("GET", f"{ME}/sessions"))["data"]
    other = next(item["id"] for item in sessions if not item["current"])
    return await stage.send("DELETE", f"{ME}/sessions/{other}")


@act("POST /api/v1/admin/me/passkeys/options")
async def start_passkey(stage: OwnerStage) -> httpx2.Response:
    return await stage.send("POST", f"{ME}/passkeys/options", current_password=PASSWORD)


@act("POST /api/v1/admin/me/passkeys")
async def enroll_passkey(stage: OwnerStage) -> httpx2.Response:
    options = await stage.prepare("POST", f"{ME}/passkeys/options", current_password=PASSWORD)
    credential = build_passkey().create(options)
    return await stage.send("POST", f"{ME}/passkeys", name="Phone", credential=credential)


@act("DELETE /api/v1/admin/me/passkeys/{id}")
async def remove_passkey(stage: OwnerStage) -> httpx2.Response:
    client = PasskeyClient(stage.harness.client)
    options = await stage.prepare("POST", f"{ME}/passkeys/options", current_password=PASSWORD)
    await stage.prepare(
        "POST", f"{ME}/passkeys", name="Phone", credential=build_passkey().create(options)
    )
    (passkey,) = await client.list(stage.headers)
    return await stage.send("DELETE", f"{ME}/passkeys/{passkey['id']}")
