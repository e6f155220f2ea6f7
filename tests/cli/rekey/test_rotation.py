"""A secret key rotation, with credentials and data that must work at every stage."""

import asyncio
from datetime import timedelta
from typing import Any

import pyotp
import pytest

from builders.approvals import approve, build_rule, require_held, set_rules
from builders.auth import SESSION_ID
from builders.card_proofs import create_keyset, personalize
from builders.kyc_documents import get_document, upload_document
from builders.participants import create_partner, post_webhook
from cli.rekey.conftest import AFTER, BEFORE, INTRODUCED, SWITCHED, OpenGateway
from harness import PIN, WRONG_PIN, BearerAuth, Harness
from tapgate.auth.actors import Actor
from tapgate.cli.rekey.job import KeyStatus, open_rekey
from tapgate.core.settings.declaration import SettingsError
from tapgate.core.vault import Vault
from tapgate.ledger.verification.checkpoints import save_progress, verify_with_checkpoints
from tapgate.runtime.store import StoreError
from tapgate_client import ids

V1 = "/api/v1"
ACTOR = Actor(record={"type": "system", "id": "test"})
OLD_KEY = Vault(BEFORE).key_id


class StoredData:
    """Records with sealed values, and credentials that are stored as keyed hashes."""

    async def create(self, harness: Harness) -> None:
        self.key = await harness.create_api_key("subscribers:read")
        self.processor = await harness.create_processor()
        self.partner = await create_partner(harness)
        self.customer = await harness.create_subscriber(balance="50")
        self.keyset = await create_keyset(harness)
        self.serial = await harness.create_card(self.customer["id"])
        self.card_keys = (await personalize(harness, self.serial, self.keyset)).json()["keys"]
        document = await upload_document(harness, self.customer)
        self.document_id = document.json()["document_id"]
        self.admin = await harness.create_admin()
        admin_id = ids.decode(ids.ADMIN, self.admin.id) or 0
        authenticator = harness.services.authenticator
        async with harness.services.transaction() as tx:
            self.refresh_token = (await authenticator.sessions.start(tx, admin_id)).refresh_token
            factors = authenticator.factors
            app = pyotp.TOTP(await factors.start_totp(tx, admin_id, SESSION_ID))
            code = app.at(harness.services.clock())
            self.codes = await factors.confirm_totp(tx, admin_id, SESSION_ID, code) or []
            await tx.execute("UPDATE admin_totp SET last_step = 0")
        self.app, self.admin_id = app, admin_id

    async def use(self, harness: Harness) -> None:
        """Use everything that does not move to the newest key by being used."""
        await self.use_key(harness)
        lookup = await harness.get(f"{V1}/pos/payments/unknown", auth=self.processor)
        assert lookup.status_code == 404, lookup.text
        body = {"type": "ping", "data": {}}
        hook = await post_webhook(harness.client, self.partner, body)
        assert hook.status_code != 401, hook.text
        response = await personalize(harness, self.serial, self.keyset)
        assert response.json()["keys"] == self.card_keys
        image = await get_document(harness, self.customer, self.document_id)
        assert image.status_code == 200, image.text
        authenticator = harness.services.authenticator
        tokens = await authenticator.sessions.refresh(self.refresh_token)
        self.refresh_token = tokens.refresh_token
        now = harness.services.clock()
        await harness.database.execute("UPDATE admin_totp SET last_step = 0")
        assert await authenticator.factors.verify(self.admin_id, self.app.at(now)) == "totp"

    async def use_recovery_code(self, harness: Harness) -> bool:
        factors = harness.services.authenticator.factors
        return await factors.verify(self.admin_id, self.codes.pop()) == "recovery_code"

    async def use_key(self, harness: Harness) -> None:
        url = f"{V1}/subscribers/{self.customer['id']}"
        response = await harness.get(url, auth=self.key)
        assert response.status_code == 200, response.text

    async def use_pin(self, harness: Harness, pin: str = PIN) -> int:
        url = f"{V1}/subscribers/{self.customer['id']}/verify-pin"
        response = await harness.post(url, json={"pin": pin}, auth=harness.get_service_auth())
        return response.status_code


async def ignore(count: int) -> None:
    """Report no progress."""


async def run_rekey(harness: Harness, *, discard: bool = False) -> list[KeyStatus]:
    """Move the data; return what still needs an old key."""
    async with open_rekey(harness.services) as rekey:
        await rekey.retire_old_keys()
        assert await rekey.move(ignore) == []
        if discard:
            for status in await rekey.list_status():
                await rekey.discard(status, ACTOR)
        return [
            status for status in await rekey.list_status() if not await rekey.release(status, ACTOR)
        ]


def list_remaining(statuses: list[KeyStatus]) -> dict[str, int]:
    """Return what needs an old key, without logins. Every test has many."""
    parts = [part for status in statuses for part in status.remaining]
    return {part.label: part.total for part in parts if part.label != "logins"}


async def test_everything_works_before_during_and_after_a_rotation(
    open_gateway: OpenGateway,
) -> None:
    data = StoredData()
    async with open_gateway(BEFORE) as before:
        await data.create(before)
        async with open_gateway(INTRODUCED) as introduced:
            await data.use(introduced)
            await data.use(before)
            async with open_gateway(SWITCHED) as switched:
                for harness in (switched, introduced, switched):
                    await data.use(harness)
                    assert await data.use_recovery_code(harness)
    async with open_gateway(SWITCHED) as switched:
        statuses = await run_rekey(switched)
        assert list_remaining(statuses) == {"PINs": 1, "recovery codes": 7}
        await data.use(switched)
        assert await data.use_pin(switched, WRONG_PIN) != 200
        assert list_remaining(await run_rekey(switched))["PINs"] == 1
        assert await data.use_pin(switched) == 200
        assert list_remaining(await run_rekey(switched)) == {"recovery codes": 7}
        with pytest.raises(SettingsError, match=f"lacks key 0 \\({OLD_KEY}\\)"):
            async with open_gateway(AFTER):
                pass
        assert await run_rekey(switched, discard=True) == []
    async with open_gateway(AFTER) as after:
        await data.use(after)
        assert await data.use_pin(after) == 200
        assert not await data.use_recovery_code(after)
    with pytest.raises(SettingsError, match="does not match this database's key"):
        async with open_gateway(BEFORE):
            pass


async def test_pin_moves_when_a_payment_uses_it(open_gateway: OpenGateway) -> None:
    async with open_gateway(BEFORE) as before:
        payer = await before.create_subscriber(balance="50")
        payee = await before.create_subscriber()
    async with open_gateway(SWITCHED) as switched:
        response = await switched.post(
            f"{V1}/wallet/transfer-p2p",
            json={
                "sender_id": payer["id"],
                "recipient_phone_number": payee["phone_number"],
                "amount": "1",
                "pin": PIN,
            },
            auth=switched.get_service_auth(),
        )
        assert response.status_code == 200, response.text
        key_ids = await switched.database.fetch("SELECT key_id FROM pins ORDER BY changed_at")
        expected = sorted([OLD_KEY, switched.services.vault.key_id])
        assert sorted(row["key_id"] for row in key_ids) == expected


async def test_per_card_keys_of_old_cards_do_not_change(open_gateway: OpenGateway) -> None:
    """Cards encoded before keysets had a master key have keys derived from the secret key."""
    data = StoredData()
    async with open_gateway(BEFORE) as before:
        await data.create(before)
        await before.database.execute("UPDATE cards SET master_keyset_id = NULL")
        response = await personalize(before, data.serial, data.keyset)
        data.card_keys = response.json()["keys"]
    async with open_gateway(SWITCHED) as switched:
        response = await personalize(switched, data.serial, data.keyset)
        assert response.json()["keys"] == data.card_keys
        assert await run_rekey(switched, discard=True) == []
    async with open_gateway(AFTER) as after:
        response = await personalize(after, data.serial, data.keyset)
        assert response.json()["keys"] == data.card_keys


async def test_requests_during_a_rekey_lose_nothing(open_gateway: OpenGateway) -> None:
    """Webhook secrets are rotated while they are moved; the last one issued is valid."""
    async with open_gateway(BEFORE) as before:
        admin = await before.create_admin()
        partners = [await create_partner(before, name=f"P{n}") for n in range(5)]
    async with open_gateway(SWITCHED) as switched:

        async def rotate(partner: dict[str, Any]) -> None:
            url = f"{V1}/admin/partners/{partner['partner']['id']}/rotate-webhook-secret"
            for _ in range(5):
                response = await switched.post(url, json={}, auth=admin)
                assert response.status_code == 200, response.text
                partner["webhook_secret"] = response.json()["webhook_secret"]

        await asyncio.gather(run_rekey(switched), *map(rotate, partners))
        assert not await run_rekey(switched, discard=True)
    async with open_gateway(AFTER) as after:
        for partner in partners:
            response = await post_webhook(after.client, partner, {"type": "ping", "data": {}})
            assert response.status_code != 401, response.text


async def test_request_that_waits_for_approval_is_executed_after_the_rotation(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway(BEFORE) as before:
        maker = await before.create_admin()
        await set_rules(before, build_rule("api_keys"))
        held = require_held(
            await before.post(
                f"{V1}/admin/api-keys",
                json={"name": "K", "scopes": ["payments:write"]},
                auth=maker,
            )
        )
    async with open_gateway(SWITCHED) as switched:
        await run_rekey(switched, discard=True)
    async with open_gateway(AFTER) as after:
        assert (await approve(after, held))["status"] == "executed"
        shown = await after.get(f"{V1}/approvals/{held['id']}", auth=maker)
        key = BearerAuth(shown.json()["result"]["key"], "")
        assert (await after.get(f"{V1}/subscribers", auth=key)).status_code == 403


async def verify(harness: Harness, admin: BearerAuth) -> None:
    """Verify the ledger and the audit log from their checkpoints, and store new ones."""
    async with harness.database.dedicated_connection() as connection:
        proof, progress = await verify_with_checkpoints(connection, harness.services.vault)
        assert proof.is_valid, proof.findings
        await save_progress(connection, harness.services.vault, progress, harness.services.clock())
    response = await harness.get(f"{V1}/audit/verify", auth=admin)
    assert response.json()["valid"], response.text


async def test_checkpoints_stay_authentic(open_gateway: OpenGateway) -> None:
    async with open_gateway(BEFORE) as before:
        await before.create_subscriber(balance="50")
        admin = await before.create_admin()
        await verify(before, admin)
    async with open_gateway(SWITCHED) as switched:
        await verify(switched, admin)
        await run_rekey(switched, discard=True)
    async with open_gateway(AFTER) as after:
        await verify(after, admin)


async def test_old_key_is_needed_until_the_last_link_has_expired(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway(BEFORE) as before:
        admin_id = ids.decode(ids.ADMIN, (await before.create_admin()).id) or 0
        async with before.services.transaction() as tx:
            invitations = before.services.authenticator.invitations
            url, expires_at = await invitations.create(tx, admin_id)
    token = url.partition("#")[2]
    async with open_gateway(SWITCHED) as switched:
        remaining = {
            part.label: part.expires_at
            for status in await run_rekey(switched)
            for part in status.remaining
        }
        assert remaining["invitations"] == expires_at
        invitations = switched.services.authenticator.invitations
        assert await invitations.find(token, switched.services.clock()) is not None
        clock = switched.services.clock
        switched.services.clock = lambda: clock() + timedelta(days=31)
        assert await run_rekey(switched) == []


async def test_old_key_is_needed_until_recovery_codes_are_replaced(
    open_gateway: OpenGateway,
) -> None:
    """An admin with passkeys has recovery codes without an authenticator app."""
    async with open_gateway(BEFORE) as before:
        admin_id = ids.decode(ids.ADMIN, (await before.create_admin()).id) or 0
        async with before.services.transaction() as tx:
            await before.services.authenticator.factors.replace_recovery_codes(tx, admin_id)
    async with open_gateway(SWITCHED) as switched:
        assert list_remaining(await run_rekey(switched)) == {"recovery codes": 10}
        async with switched.services.transaction() as tx:
            await switched.services.authenticator.factors.replace_recovery_codes(tx, admin_id)
        assert list_remaining(await run_rekey(switched)) == {}


async def test_rekey_is_refused_while_a_node_uses_the_old_key(open_gateway: OpenGateway) -> None:
    async with open_gateway(INTRODUCED) as introduced:
        await introduced.services.nodes.join()
        async with open_gateway(SWITCHED) as switched, open_rekey(switched.services) as rekey:
            with pytest.raises(StoreError, match=f"still uses key {OLD_KEY} for new data"):
                await rekey.retire_old_keys()


async def test_nodes_join_only_if_they_can_read_each_others_data(
    open_gateway: OpenGateway,
) -> None:
    async def join(harness: Harness, port: int) -> None:
        settings = harness.services.settings.replace(port=port, node_id=str(port))
        registry = type(harness.services.nodes)(
            settings, harness.services.nodes.role, harness.database, harness.services.health
        )
        assert await registry.join() == []

    async with open_gateway(BEFORE) as before, open_gateway(INTRODUCED) as introduced:
        await join(before, 1)
        await join(introduced, 2)
        async with open_gateway(SWITCHED) as switched:
            with pytest.raises(SettingsError, match="lacks the first key of TAPGATE_SECRET_KEY"):
                await join(switched, 3)
            await before.database.execute("DELETE FROM nodes WHERE id = '1'")
            await join(switched, 3)
            with pytest.raises(SettingsError, match="TAPGATE_SECRET_KEY lacks the first key of"):
                await join(before, 1)
