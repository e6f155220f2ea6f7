"""An auditor's work: the audit log, and consistent statements, lists, events and books."""

import itertools
from datetime import UTC, datetime
from decimal import Decimal

import asyncpg
import pytest

from business.payments.wallets.pdf_text import extract_pages
from drivers.actors import Admin, Customer, Record, require_error, require_success
from drivers.csv_files import read_records
from drivers.deployments import Deployment, sum_history
from drivers.webhooks import ReceivedWebhook, WebhookReceiver, wait_until_equal
from harness import PIN, WRONG_PIN, split_words

pytestmark = [pytest.mark.refund, pytest.mark.webhooks, pytest.mark.statements]


class EventSubscriber:
    """External receiver of webhook events, with its signing secret."""

    def __init__(self, receiver: WebhookReceiver, secret: str) -> None:
        self.receiver = receiver
        self.secret = secret

    async def list_types(self) -> list[str]:
        """Return the event types sorted, because deliveries may arrive in any order."""
        return sorted(webhook.content["type"] for webhook in self.receiver.received)

    def list_records(self, event: str) -> list[Record]:
        return [webhook.content["data"] for webhook in self._filter_by_type(event)]

    def _filter_by_type(self, event: str) -> list[ReceivedWebhook]:
        return [webhook for webhook in self.receiver.received if webhook.content["type"] == event]


async def wait_until_sealed(auditor: Admin) -> Record:
    """Wait until every audit entry is sealed, and return the verification result."""

    async def count_unsealed() -> int:
        return int(require_success(await auditor.get("audit/verify"))["unsealed"])

    await wait_until_equal(count_unsealed, 0)
    return require_success(await auditor.get("audit/verify"))


async def test_audit_log_records_actions_and_verification_detects_tampering(
    deployment: Deployment, ada: Admin
) -> None:
    sorie, auditor = await ada.create_admin("Sorie", "S"), await ada.create_admin("Isata", "C")
    app = await ada.create_app()
    aminata = await ada.create_funded_customer("100.00", app)
    url = f"subscribers/{aminata.id}"

    # Actions by several actors.
    tracing = {"X-Request-ID": "call-4711"}
    response = await sorie.client.post(
        f"/api/v1/{url}/block", json={"reason": "theft"}, headers=tracing, auth=sorie.auth
    )
    require_success(response)
    assert require_error(await sorie.post(f"{url}/unblock")) == (403, "FORBIDDEN")
    require_success(await auditor.post(f"{url}/unblock", reason="found again"))
    require_success(await auditor.put(url, kyc_level=2))
    require_success(await app.post(f"{url}/change-pin", old_pin=PIN, new_pin="8264"))
    require_success(await app.post(f"cards/{aminata.card}/block", reason="customer_request"))
    wrong = {"email": "ada@example.com", "password": "not this one at all"}
    response = await app.client.post("/api/v1/admin/login", json=wrong)
    assert require_error(response) == (401, "UNAUTHORIZED")

    # Entries by actor, newest first.
    sorie_entries = await auditor.list_all("audit/logs", actor_id=sorie.id)
    assert [(entry["event"], entry["result"]) for entry in sorie_entries] == [
        ("access.denied", "denied"),
        ("subscriber.blocked", "success"),
        ("admin.login", "success"),
    ]
    blocked = sorie_entries[1]
    assert blocked["actor"]["name"] == "Sorie"
    assert blocked["actor"]["role"] == "support_user"
    assert (blocked["reason"], blocked["request_id"]) == ("theft", "call-4711")
    assert blocked["changes"]["status"] == ["ACTIVE", "BLOCKED"]
    assert blocked["ip"] == "127.0.0.1"

    # Entries by resource.
    subscriber_entries = await auditor.list_all("audit/logs", resource_id=aminata.id)
    assert [entry["event"] for entry in subscriber_entries] == [
        "subscriber.pin_changed",
        "subscriber.kyc_override",
        "subscriber.unblocked",
        "subscriber.blocked",
        "subscriber.created",
    ]
    assert subscriber_entries[1]["changes"]["kyc_level"] == [1, 2]
    assert subscriber_entries[0]["actor"]["type"] == "api_key"
    assert all(PIN not in split_words(str(entry["changes"])) for entry in subscriber_entries)
    query = {"resource_type": "card", "event": "card.blocked"}
    (card,) = await auditor.list_all("audit/logs", actor_id=app.id, **query)
    assert card["resource_id"] == aminata.card

    # Entries by result and date.
    (failed,) = await auditor.list_all("audit/logs", event="admin.login", result="failure")
    assert (failed["resource_id"], failed["actor"]["type"]) == ("ada@example.com", "anonymous")
    today = datetime.now(UTC).date().isoformat()
    denied = await auditor.list_all("audit/logs", result="denied", **{"from": today})
    assert denied[0]["actor"]["id"] == sorie.id
    assert await auditor.list_all("audit/logs", to="2020-01-01") == []
    # Support users cannot read the audit log.
    assert require_error(await sorie.get("audit/logs")) == (403, "FORBIDDEN")

    # A disabled admin and a deleted API key are rejected by every process, but remain in the log.
    async with deployment.open_client_per_process() as clients:
        callers = [caller.with_client(client) for caller in (sorie, app) for client in clients]
        for caller in callers:
            require_success(await caller.get(url))
        require_success(await ada.post(f"admin/users/{sorie.id}/disable"))
        gone = await ada.client.delete(f"/api/v1/admin/api-keys/{app.id}", auth=ada.auth)
        assert gone.status_code == 204
        for caller in callers:
            assert require_error(await caller.get(url)) == (401, "UNAUTHORIZED")
    remaining = require_success(await auditor.get("audit/logs", actor_id=ada.id, limit=2))["data"]
    assert [(entry["event"], entry["resource_id"]) for entry in remaining] == [
        ("api_key.deleted", app.id),
        ("admin.disabled", sorie.id),
    ]

    # The chain is complete, and each entry contains its predecessor's hash.
    verdict = await wait_until_sealed(auditor)
    assert verdict["valid"] is True
    assert verdict["first_broken"] is None
    entries = await auditor.list_all("audit/logs", limit=100)
    assert len(entries) == verdict["entries"]
    for later, earlier in itertools.pairwise(entries):
        assert later["previous_hash"] == earlier["hash"] is not None

    # The database rejects changes to audit entries.
    connection = await asyncpg.connect(deployment.database_url)
    try:
        change = "UPDATE audit_entries SET reason = $2 WHERE sequence = $1"
        with pytest.raises(asyncpg.RestrictViolationError):
            await connection.execute(change, blocked["sequence"], "nothing to see")
        # The database owner can change entries, but verification detects the change.
        await connection.execute("ALTER TABLE audit_entries DISABLE TRIGGER USER")
        await connection.execute(change, blocked["sequence"], "nothing to see")
        verdict = require_success(await auditor.get("audit/verify"))
        assert (verdict["valid"], verdict["first_broken"]) == (False, blocked["id"])
        status, output = await deployment.run_command("verify")
        assert status == 1
        assert "FAILED" in output
        await connection.execute(change, blocked["sequence"], "theft")
        await connection.execute("ALTER TABLE audit_entries ENABLE TRIGGER USER")
    finally:
        await connection.close()
    assert require_success(await auditor.get("audit/verify"))["valid"] is True


async def get_statement(clerk: Admin, customer: Customer, format: str) -> Record:
    today = datetime.now(UTC).date().isoformat()
    return require_success(
        await clerk.post(
            "wallet/account-statement",
            subscriber_id=customer.id,
            from_date=today,
            to_date=today,
            format=format,
        )
    )


async def test_statements_lists_balances_and_webhook_events_agree(ada: Admin) -> None:
    clerk = await ada.create_admin("Fatmata", "F")
    app = await ada.create_app()
    receiver = WebhookReceiver()
    async with receiver.listen():
        created = require_success(
            await ada.post("admin/webhook-endpoints", url=receiver.url, events=["*"])
        )
        subscriber = EventSubscriber(receiver, created["secret"])

        aminata = await ada.create_funded_customer("1000.00", app, "Aminata Kamara")
        mohamed = await ada.create_funded_customer("20.00", app, "Mohamed Sesay")
        terminal = (await ada.create_merchant()).server
        sent = require_success(await aminata.send_money("200.00", mohamed, memo="school fees"))
        paid = require_success(
            await terminal.pay("100.00", aminata.card, PIN, transaction_ref="ORDER-9")
        )
        require_success(await terminal.refund(paid["transaction_id"], "30.00"))
        assert require_error(await terminal.pay("400.00", mohamed.card)) == (
            402,
            "INSUFFICIENT_FUNDS",
        )
        assert require_error(await terminal.pay("1.00", mohamed.card, WRONG_PIN)) == (
            400,
            "INVALID_PIN",
        )
        require_success(await app.post(f"cards/{mohamed.card}/block", reason="lost"))

        # Statement, list, and balance agree.
        statement = await get_statement(clerk, aminata, "json")
        assert (statement["opening_balance"], statement["closing_balance"]) == ("0.00", "727.00")
        assert (statement["total_credits"], statement["total_debits"]) == ("1030.00", "303.00")
        assert [(line["type"], line["debit"], line["credit"]) for line in statement["entries"]] == [
            ("partner_fund", "0.00", "1000.00"),
            ("transfer_p2p", "200.00", "0.00"),
            ("fee", "3.00", "0.00"),
            ("pos_payment", "100.00", "0.00"),
            ("refund", "0.00", "30.00"),
        ]
        assert statement["entries"][-1]["balance"] == "727.00" == await aminata.get_balance()
        for customer in (aminata, mohamed):
            history = await clerk.list_transactions(customer.id)
            assert sum_history(history) == Decimal(await customer.get_balance())

        # CSV and PDF files are downloaded with the link alone.
        link = (await get_statement(clerk, aminata, "csv"))["statement_url"]
        file = await app.client.get(link)
        assert file.headers["Content-Type"].startswith("text/csv")
        rows = read_records(file.content)
        balances = [row["balance"] for row in rows if row.get("transaction_id")]
        assert balances[-5:] == [line["balance"] for line in statement["entries"]]
        link = (await get_statement(clerk, aminata, "pdf"))["statement_url"]
        file = await app.client.get(link)
        assert file.headers["Content-Type"] == "application/pdf"
        text = " ".join(word for page in extract_pages(file.content) for word in page)
        assert "727.00" in text
        assert sent["transaction_id"] in text
        response = await app.client.get(link[:-1] + ("x" if link[-1] != "x" else "y"))
        assert require_error(response) == (404, "NOT_FOUND")

        # Every event is delivered once, is signed, and agrees with the records.
        deposits_and_top_ups = 4
        await wait_until_equal(
            subscriber.list_types,
            ["card.blocked"]
            + ["card.linked"] * 2
            + ["subscriber.created"] * 2
            + ["transaction.completed"] * (deposits_and_top_ups + 3)
            + ["transaction.failed", "transaction.refunded"],
        )
        # The last delivery may not be logged yet.
        path = f"admin/webhook-endpoints/{created['id']}/deliveries"

        async def list_delivery_results() -> set[tuple[str, int]]:
            return {(item["status"], item["attempts"]) for item in await ada.list_all(path)}

        await wait_until_equal(list_delivery_results, {("delivered", 1)})
    assert all(webhook.is_signed_with(subscriber.secret) for webhook in receiver.received)
    assert len({received.id for received in receiver.received}) == len(receiver.received)
    (failed,) = subscriber.list_records("transaction.failed")
    assert (failed["amount"], failed["failure_code"]) == ("400.00", "INSUFFICIENT_FUNDS")
    (blocked,) = subscriber.list_records("card.blocked")
    assert (blocked["serial"], blocked["status"]) == (mohamed.card, "LOST")
    (transfer,) = [
        entry
        for entry in subscriber.list_records("transaction.completed")
        if entry["id"] == sent["transaction_id"]
    ]
    assert (transfer["amount"], transfer["fee_amount"]) == ("200.00", "3.00")
    (refunded,) = subscriber.list_records("transaction.refunded")
    assert refunded["id"] == paid["transaction_id"]
    assert (refunded["status"], refunded["refunded_amount"]) == ("partially_refunded", "30.00")
    assert len(await ada.list_all(path)) == len(receiver.received)


async def test_finance_reconciles_the_books_with_the_journal(ada: Admin) -> None:
    finance, support = await ada.create_admin("Fatmata", "F"), await ada.create_admin("Sorie", "S")
    app = await ada.create_app()
    aminata = await ada.create_funded_customer("500.00", app, "Aminata Kamara")
    foday = await ada.create_agent(app, "Foday Bangura")
    await finance.fund_agent(foday, "1000.00")
    require_success(await foday.cash_in("200.00", aminata))
    terminal = (await ada.create_merchant()).server
    require_success(await terminal.pay("100.00", aminata.card, PIN))

    # The finance user verifies the ledger; a support user may not.
    proof = require_success(await finance.post("ledger/verify"))
    assert proof["holds"] is True
    assert require_error(await support.post("ledger/verify")) == (403, "FORBIDDEN")
    assert require_error(await support.get("ledger/accounts")) == (403, "FORBIDDEN")

    # The accounts include the platform's own, and match the trial balance.
    accounts = require_success(await finance.get("ledger/accounts"))["data"]
    by_kind = {row["kind"]: row for row in accounts}
    assert Decimal(by_kind["cash"]["debit"]) >= 1500
    assert Decimal(by_kind["fees"]["credit"]) >= 1
    assert Decimal(by_kind["commission_expense"]["debit"]) >= 2
    trial_balance = require_success(await finance.get("ledger/trial-balance"))
    assert trial_balance["totals"]["debit"] == trial_balance["totals"]["credit"]
    sides = {row["gl_code"]: (row["debit"], row["credit"]) for row in trial_balance["rows"]}
    assert sides == {row["gl_code"]: (row["debit"], row["credit"]) for row in accounts}

    # All transactions are of today. Their journal adds up to the trial balance.
    today = datetime.now(UTC).date().isoformat()
    file = await finance.get("ledger/journal", day=today, format="csv")
    assert file.headers["Content-Disposition"] == f'attachment; filename="journal-{today}.csv"'
    assert "Kamara" not in file.text and aminata.phone not in file.text
    sums: dict[str, Decimal] = dict.fromkeys(sides, Decimal(0))
    for row in read_records(file.content):
        sums[row["gl_code"]] += Decimal(row["debit"]) - Decimal(row["credit"])
    expected = {code: Decimal(debit) - Decimal(credit) for code, (debit, credit) in sides.items()}
    assert sums == expected

    # The company uses its own code for customer balances.
    code = {"kind": "wallet", "gl_code": "2110", "name": "E-money in issue"}
    require_success(await finance.put("ledger/gl-codes", data=[code]))
    renamed = require_success(await finance.get("ledger/trial-balance", as_of=today))["rows"]
    assert {row["gl_code"] for row in renamed} == sides.keys() - {"2100"} | {"2110"}
