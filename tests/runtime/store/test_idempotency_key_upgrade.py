"""A retry after an upgrade replays a request that an older release scoped to a signing key."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from drivers.in_process import AppTransport
from drivers.schema_upgrades import (
    SECRET_KEY,
    build_schema,
    build_settings,
    complete_last_1x_release,
    get_migration_before,
    verify_ledger,
)
from harness import HmacAuth
from tapgate.core.vault import Vault
from tapgate.http.api.idempotency import calculate_fingerprint
from tapgate.ledger.commands import TransactionResult, encode_result
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.migrate import migrate
from tapgate.server.gateway import create_app, open_gateway_services
from tapgate_client import ids
from tapgate_client.schemas.pos import PosPaymentRequest

PAY_URL = "/api/v1/pos/payment"
PAYMENT_ID = 1004
BODY: dict[str, Any] = {"request_id": "pos-1", "card_serial": "CARD-1", "amount": "200.00"}
#: Key ID -> secret. 731 is a terminal's current key, 732 its deleted predecessor.
SECRETS = {731: "current", 732: "deleted"}


@pytest.fixture(params=SECRETS)
async def upgraded_database_url(
    request: pytest.FixtureRequest, empty_database_url: str, tmp_path: Path
) -> str:
    """Migrate a database whose payment is scoped to one of the terminal's keys."""
    await build_schema(empty_database_url, get_migration_before("0028"), tmp_path)
    database, vault = await Database.connect(empty_database_url), Vault(SECRET_KEY)
    body = PosPaymentRequest(**BODY)
    result = TransactionResult(transaction_id=PAYMENT_ID, status="completed", amount=200_00,
                    fee=3_00,
                    payer_available=350_00)  # fmt: skip
    async with database.transaction() as tx:
        for key_id, secret in SECRETS.items():
            sealed = vault.seal(secret.encode(), b"hmac_key %d" % key_id)
            await tx.execute("UPDATE hmac_keys SET secret = $2 WHERE id = $1", key_id, sealed)
        await tx.execute("SET LOCAL session_replication_role = replica")
        await tx.execute(
            "UPDATE transactions SET scope = $2, fingerprint = $3, answer = $4 WHERE id = $1",
            PAYMENT_ID,
            ids.encode(ids.KEY, request.param),
            calculate_fingerprint(PAY_URL, body),
            encode_result(result),
        )
    await database.close()
    await migrate(empty_database_url)
    await complete_last_1x_release(empty_database_url)
    return empty_database_url


async def test_retry_after_the_upgrade_returns_the_original_response(
    upgraded_database_url: str, tmp_path: Path
) -> None:
    async with open_gateway_services(
        build_settings(upgraded_database_url, tmp_path), upgraded_database_url
    ) as services:
        async with services.transaction() as tx:
            await insert_defaults(tx, "SLE", services.new_id)
            created = await services.authenticator.hmac_keys.create(
                tx, processor_id=401, terminal_id=411
            )
        keys = {731: SECRETS[731], created.id: created.secret}
        transport = AppTransport(create_app(services))
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
            for key_id, secret in keys.items():
                auth = HmacAuth(ids.encode(ids.KEY, key_id), secret)
                replayed = await client.post(PAY_URL, json=BODY, auth=auth)
                assert replayed.status_code == 200, replayed.text
                assert replayed.headers["idempotent-replayed"] == "true"
                receipt = replayed.json()
                assert receipt["transaction_id"] == ids.encode(ids.TRANSACTION, PAYMENT_ID)
                other = await client.post(PAY_URL, json=BODY | {"amount": "1.00"}, auth=auth)
                assert (other.status_code, other.json()["code"]) == (409, "DUPLICATE_REQUEST")
        scopes = await services.database.fetch(
            "SELECT id, request_scope FROM hmac_keys WHERE request_scope <> 'none'"
        )
        assert {tuple(row) for row in scopes} == {(731, "owner"), (732, "former"), (733, "owner")}
    assert (await verify_ledger(upgraded_database_url)).is_valid
