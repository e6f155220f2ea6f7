"""Every client operation gets a response from the gateway that the client can decode."""

import io
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pyotp
import pytest
from PIL import Image

from builders.approvals import create_approvers
from builders.auth import EMAIL, PASSWORD
from builders.batches import pay_batches
from builders.books import send_elsewhere, set_peer
from builders.branding import build_png
from builders.participants import create_agent
from builders.passkeys import build_passkey
from builders.payouts import create_merchant
from client.operation_catalog import list_methods
from drivers.identity_provider import FakeProvider
from drivers.in_process import GATEWAY_URL, NO_BACKOFF, ClientFactory
from tapgate.auth.oidc.logins import OidcLogins
from tapgate.server.gateway_installation import create_first_admin
from tapgate_client import (
    VERSION,
    AccessToken,
    ApiKey,
    ApprovalRequiredError,
    AsyncTapgateClient,
    ConflictError,
    PartnerKey,
    PermissionDeniedError,
    PosKey,
    ids,
)
from tapgate_client.clock import get_platform_day
from tapgate_client.operation import Operation
from tapgate_client.schemas.admin import Scope
from tapgate_client.schemas.approvals import ApprovalRule
from tapgate_client.schemas.chat import ChatTurn
from tapgate_client.schemas.general_ledger import GlCodeUpdate
from tapgate_client.schemas.messages import StatusReport
from tapgate_client.schemas.passkeys import AssertedCredential, AttestedCredential
from tapgate_client.schemas.provider_warnings import ProviderReport
from tapgate_client.schemas.saved_replies import SavedReplyTexts
from tapgate_client.transport import AsyncTransport
from tapgate_sandbox.software_card import SoftwareCard

PIN, NEW_PIN, AGENT_PIN = "4071", "8352", "5927"
PNG = io.BytesIO()
Image.new("RGB", (64, 64), "white").save(PNG, "PNG")


@pytest.fixture
def called_operations(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return a set that collects, by name, the operations that got a response."""
    called = set()
    send = AsyncTransport.send

    async def send_and_record(self: AsyncTransport, operation: Operation[Any], /) -> Any:
        response = await send(self, operation)
        called.add(operation.name)
        return response

    monkeypatch.setattr(AsyncTransport, "send", send_and_record)
    return called


async def test_every_operation_gets_a_response(
    client_factory: ClientFactory, called_operations: set[str]
) -> None:
    await client_factory.harness.disable_compliance_rules()
    await create_first_admin(client_factory.services, EMAIL, PASSWORD)
    admin = await log_in_admin(client_factory)
    key = await call_admin_operations(client_factory, admin)
    third_party = AsyncTapgateClient(
        GATEWAY_URL, ApiKey(key), http=client_factory.transport, retries=NO_BACKOFF
    )
    people = await call_subscriber_operations(client_factory, admin, third_party)
    await call_wallet_operations(client_factory, admin, third_party, people)
    await call_agent_operations(client_factory, admin, third_party, people)
    await call_merchant_operations(client_factory, admin, people)
    await call_owner_operations(client_factory, admin)
    await call_partner_operations(client_factory, admin, people)
    await call_compliance_operations(client_factory, admin, people)
    await call_replacement_operations(client_factory, admin, people)
    await client_factory.services.request_log.flush()
    await call_closing_operations(admin, people)
    await call_approval_operations(client_factory, admin)
    await call_payout_operations(client_factory, admin)
    await call_batch_operations(client_factory, admin)
    await call_day_close_operations(client_factory, admin)
    assert called_operations == {method.sample_operation.name for method in list_methods()}


async def call_payout_operations(client_factory: ClientFactory, admin: AsyncTapgateClient) -> None:
    merchant = await create_merchant(client_factory.harness)
    created = await admin.bank_accounts.create(
        owner_type="platform", holder_name="Tapgate Ltd", bank_code="SLCBSLFR", number="0012345"
    )
    auth = await client_factory.harness.create_admin()
    checker = client_factory.create_async(AccessToken(auth.credential))
    assert (await checker.bank_accounts.verify(created.id)).status == "verified"
    assert (await admin.bank_accounts.get(created.id)).number == "0012345"
    listed = [item async for item in admin.bank_accounts.list(owner_type="platform")]
    assert [item.number for item in listed] == ["2345"]
    payouts = [await admin.payouts.request(owner_id=merchant, amount="10") for _ in range(3)]
    cancelled, paid, returned = [payout.payout_id for payout in payouts]
    assert (await admin.payouts.cancel(cancelled)).status == "cancelled"
    run = await admin.payouts.create_run()
    assert (await admin.payouts.get_run(run.id)).payouts == 2
    assert [item async for item in admin.payouts.list_runs()] == [run]
    assert b"pain.001.001.09" in (await admin.payouts.download_file(run.id)).content
    assert (await admin.payouts.mark_paid(paid)).status == "paid"
    assert (await admin.payouts.mark_returned(returned, reason="closed")).status == "returned"
    assert (await admin.payouts.get(paid)).run_id == run.id
    assert len([item async for item in admin.payouts.list(owner_id=merchant)]) == 3
    await call_reconciliation_operations(admin, created.id, paid)
    schedule = await admin.payouts.set_schedule(merchant, interval="daily")
    assert await admin.payouts.get_schedule(merchant) == schedule
    assert (await admin.bank_accounts.block(created.id, reason="closed")).status == "blocked"


async def call_reconciliation_operations(
    admin: AsyncTapgateClient, account_id: str, payout_id: str
) -> None:
    group = admin.reconciliation
    mapping = await group.set_csv_mapping(account_id, date="Day", amount="Sum")
    assert await group.get_csv_mapping(account_id) == mapping
    file = b"Day,Sum\n2026-01-15,-10.00\n2026-01-15,-0.78\n2026-01-15,-0.77\n"
    statement = await group.import_bank_statement(file, format="csv", bank_account_id=account_id)
    assert (statement.account, statement.unmatched) == ("0012345", 3)
    assert (await group.get_bank_statement(statement.id)).lines == 3
    assert [item.account async for item in group.list_bank_statements()] == ["2345"]
    lines = [item async for item in group.list_bank_statement_lines(status="unmatched")]
    assert (await group.list_match_candidates(lines[0].id)).data == []
    matched = await group.match_bank_statement_line(lines[2].id, payout_id=payout_id)
    assert (matched.status, matched.payout_id) == ("matched", payout_id)
    assert (await group.post_bank_statement_line(lines[0].id, reason="fee")).status == "posted"
    assert (await group.ignore_bank_statement_line(lines[1].id, reason="fee")).reason == "fee"
    assert (await group.unmatch_bank_statement_line(lines[1].id)).status == "unmatched"
    reports = admin.finance_reports
    for file in (
        await reports.get_income_statement(format="csv"),
        await reports.get_safeguarding_report(format="pdf"),
        await reports.get_reconciliation_report(),
        await admin.general_ledger.download_trial_balance(),
    ):
        assert file.content


async def call_batch_operations(client_factory: ClientFactory, admin: AsyncTapgateClient) -> None:
    person = await client_factory.harness.create_subscriber()
    batch = await admin.batches.create(name="Salaries", source_id="platform")
    file = f"phone_number,amount,reference\n{person['phone_number']},10,A\n".encode()
    assert (await admin.batches.upload_lines(batch.id, file)).lines == 1
    assert (await admin.batches.validate(batch.id)).valid == 1
    assert (await admin.batches.run(batch.id)).status == "running"
    await pay_batches(client_factory.harness)
    assert (await admin.batches.get(batch.id)).status == "completed"
    results = await admin.batches.list_lines(batch.id, format="csv")
    assert results.content.count(b",paid,") == 1
    cancelled = await admin.batches.create(name="Grants", source_id="platform")
    assert (await admin.batches.cancel(cancelled.id)).status == "cancelled"
    assert [item.name async for item in admin.batches.list()] == ["Grants", "Salaries"]


async def call_day_close_operations(
    client_factory: ClientFactory, admin: AsyncTapgateClient
) -> None:
    services = client_factory.services
    day = str(get_platform_day(services.clock(), services.settings.timezone))
    client_factory.harness.advance_clock(days=1)
    closed = await admin.day_close.close_ledger_day(day)
    assert await admin.day_close.get_ledger_day(day) == closed
    assert [record async for record in admin.day_close.list_ledger_days()] == [closed]
    assert (await admin.day_close.list_ledger_keys()).keys[0].key_id == closed.key_id
    posted = [item.id async for item in admin.transactions.list(status="completed", limit=1)]
    assert (await admin.day_close.get_transaction_proof(posted[0])).day == closed


async def log_in_admin(client_factory: ClientFactory) -> AsyncTapgateClient:
    anonymous = client_factory.create_async()
    assert (await anonymous.system.get_health()).healthy
    assert (await anonymous.system.get_liveness()).live
    assert (await anonymous.system.get_version()).version == VERSION
    assert (await anonymous.system.get_readiness()).ready
    tokens = await anonymous.admin.log_in(email=EMAIL, password=PASSWORD)
    tokens = await anonymous.admin.refresh_token(refresh_token=tokens.refresh_token)
    me = await client_factory.create_async(AccessToken(tokens.token)).admin.get_me()
    assert me.email == EMAIL
    await call_account_operations(client_factory, AccessToken(tokens.token))
    await call_oidc_operations(client_factory)
    return await client_factory.create_for_admin()


async def call_oidc_operations(client_factory: ClientFactory) -> None:
    services, anonymous = client_factory.services, client_factory.create_async()
    async with FakeProvider().listen() as provider:
        services.authenticator.oidc = OidcLogins(
            provider.settings,
            GATEWAY_URL,
            database=services.database,
            vault=services.vault,
            clock=services.clock,
        )
        started = await anonymous.admin.start_oidc_login()
        callback = provider.authorize(started.authorization_url)
        tokens = await anonymous.admin.log_in_with_oidc(login_token=started.login_token, **callback)
        me = client_factory.create_async(AccessToken(tokens.token))
        assert (await me.admin.get_oidc_logout()).logout_url
        started = await me.admin.start_oidc_step_up()
        callback = provider.authorize(started.authorization_url)
        verified = await me.admin.complete_oidc_step_up(login_token=started.login_token, **callback)
        assert verified.verified_until


async def call_account_operations(client_factory: ClientFactory, credential: AccessToken) -> None:
    me = client_factory.create_async(credential)
    await me.account.change_password(current_password=PASSWORD, new_password=f"new {PASSWORD}")
    preferences = await me.account.update_preferences(theme="dark")
    assert await me.account.get_preferences() == preferences
    sessions = [session async for session in me.account.list_sessions()]
    assert [session.current for session in sessions] == [True]
    app = pyotp.TOTP((await me.account.start_totp()).secret)
    code = app.at(client_factory.services.clock())
    codes = (await me.account.confirm_totp(code=code)).recovery_codes
    assert (await me.account.step_up(otp=codes[0])).verified_until
    codes = (await me.account.replace_recovery_codes()).recovery_codes
    await me.account.remove_totp(code=codes[1])
    await call_passkey_operations(me)
    await me.admin.log_out()
    me = client_factory.create_async(
        AccessToken((await me.admin.log_in(email=EMAIL, password=f"new {PASSWORD}")).token)
    )
    await me.account.end_other_sessions()
    (session,) = [session async for session in me.account.list_sessions()]
    await me.account.end_session(session.id)


async def call_passkey_operations(me: AsyncTapgateClient) -> None:
    options = await me.account.start_passkey(current_password=f"new {PASSWORD}")
    passkey = build_passkey()
    created = msgspec.convert(passkey.create(msgspec.to_builtins(options)), AttestedCredential)
    enrolled = await me.account.enroll_passkey(name="Phone", credential=created)
    assert len(enrolled.recovery_codes or ()) == 10
    assert [item.id async for item in me.account.list_passkeys()] == [enrolled.id]

    async def prove() -> AssertedCredential:
        options = msgspec.to_builtins(await me.admin.start_passkey_login())
        return msgspec.convert(passkey.get(options), AssertedCredential)

    assert (await me.admin.log_in_with_passkey(credential=await prove())).token
    assert (await me.account.step_up(passkey=await prove())).verified_until
    await me.account.remove_passkey(enrolled.id)


async def call_admin_operations(client_factory: ClientFactory, admin: AsyncTapgateClient) -> str:
    other = await admin.admin.create(
        email="ben@example.com", password=PASSWORD, name="Ben", role="support_user"
    )
    assert (await admin.system.get_nodes()).data == []
    settings = {item.name: item.value for item in (await admin.system.get_settings()).data}
    assert settings["TAPGATE_CURRENCY"] and settings["TAPGATE_SECRET_KEY"] is None
    logo = build_png()
    branding = await admin.branding.update(name="Salone Pay", logo=logo)
    assert await admin.branding.get() == branding
    assert (await admin.branding.get_logo()).media_type == "image/png"
    assert (await admin.admin.update(other.id, role="finance_user")).role == "finance_user"
    assert (await admin.admin.reset_factors(other.id)).id == other.id
    assert (await admin.admin.get(other.id)).sessions == []
    assert (await admin.admin.confirm(other.id)).link_seen_by == []
    token = (await admin.admin.reset_password(other.id)).url.partition("#")[2]
    await admin.admin.accept_invitation(token=token, password=f"new {PASSWORD}")
    assert (await admin.admin.get_offboarding(other.id)).api_keys == []
    assert (await admin.admin.disable(other.id)).status == "disabled"
    assert (await admin.admin.enable(other.id)).status == "active"
    assert other.id in [user.id async for user in admin.admin.list(limit=1)]
    spare = await admin.admin.create_api_key(
        name="Spare",
        scopes=["cards:read"],
        expires_at=client_factory.services.clock() + timedelta(days=365),
    )
    changed = await admin.admin.update_api_key(spare.id, rate_limit=5, burst="", name="Kiosk")
    assert (changed.rate_limit, await admin.admin.get_api_key(spare.id)) == (5, changed)
    assert (await admin.admin.rotate_api_key(spare.id, grace_seconds=60)).id == spare.id
    await admin.admin.delete_api_key(spare.id)
    key = await admin.admin.create_api_key(name="Shop", scopes=list(Scope))
    assert [item.id async for item in admin.admin.list_api_keys()] == [key.id]
    return key.key


async def call_subscriber_operations(
    client_factory: ClientFactory, admin: AsyncTapgateClient, third_party: AsyncTapgateClient
) -> dict[str, str]:
    """Call the subscriber and card operations; return the IDs of two subscribers with cards."""
    uploaded = await admin.cards.upload(b"Serial No.,MAC Address\nTAP-A,\nTAP-B,\nTAP-C,\nTAP-A,\n")
    assert (uploaded.created, uploaded.skipped + len(uploaded.errors)) == (3, 1)
    people = {}
    for name, serial in (("a", "TAP-A"), ("b", "TAP-B")):
        created = await third_party.subscribers.register(
            phone_number=client_factory.harness.new_phone_number(),
            first_name="Aminata",
            last_name="Kamara",
            pin=PIN,
        )
        await third_party.cards.link(
            subscriber_id=created.subscriber_id, card_serial=serial, pin=PIN
        )
        people[name] = created.subscriber_id
    subscriber_id = people["a"]
    child = await third_party.cards.create_child_card(
        parent_subscriber_id=subscriber_id,
        card_serial="TAP-C",
        parent_pin=PIN,
        child_pin="5092",
        daily_limit="50",
        child_name="Fatu",
    )
    assert child.card.type == "CHILD"
    assert {card.serial async for card in admin.cards.list(subscriber_id=subscriber_id)} == {
        "TAP-A",
        "TAP-C",
    }
    await admin.cards.block("TAP-C", reason="fraud")
    assert (await admin.cards.unblock("TAP-C", reason="found")).card.status == "ACTIVE"
    assert (await admin.cards.get("TAP-C")).holder_name == "Fatu"
    updated = await third_party.cards.update("TAP-C", daily_limit="60", child_relationship="niece")
    assert (updated.daily_limit, updated.child_relationship) == ("60.00", "niece")
    await admin.cards.change_pin("TAP-C", old_pin="5092", new_pin=NEW_PIN)
    result = await admin.subscribers.update(subscriber_id, address="1 Main St")
    assert result.address == "1 Main St"
    await admin.subscribers.block(subscriber_id, reason="asked")
    assert (await admin.subscribers.unblock(subscriber_id)).subscriber.status == "ACTIVE"
    await admin.subscribers.verify_pin(subscriber_id, pin=PIN)
    await admin.subscribers.change_pin(subscriber_id, old_pin=PIN, new_pin=NEW_PIN)
    await admin.subscribers.request_pin_reset(subscriber_id)
    phone = (await admin.subscribers.get(subscriber_id)).phone_number
    await admin.subscribers.reset_pin(
        subscriber_id, otp=await client_factory.harness.get_pending_code(phone), new_pin=PIN
    )
    client_factory.harness.advance_clock(minutes=1)
    await admin.cards.request_pin_reset("TAP-C")
    await admin.cards.reset_pin(
        "TAP-C", otp=await client_factory.harness.get_pending_code(phone), new_pin="5092"
    )
    code, _ = [
        message
        async for message in admin.subscribers.list_messages(
            subscriber_id, template="one_time_code"
        )
    ]
    delivered = StatusReport(message_id=code.message_id, status="delivered")
    async with client_factory.create_for_service() as messenger:
        assert (await messenger.messages.report_statuses([delivered])).updated == 1
        warning = ProviderReport(
            kind="account",
            subject="account",
            state="DISABLE",
            resolved=False,
            occurred_at="2026-01-31T12:00:00Z",
        )
        assert (await messenger.messages.report_provider_warnings([warning])).updated == 1
        assert len((await admin.messages.list_provider_warnings()).data) == 1
        turn_id = ids.encode(ids.CHAT_TURN, client_factory.harness.services.new_id())
        turn = ChatTurn(
            turn_id=turn_id, phone_number=phone, channel="bridge", input="text", outcome="answered"
        )
        assert (await messenger.messages.report_chat_turns([turn])).stored == 1
    code, _ = [
        message
        async for message in admin.subscribers.list_messages(
            subscriber_id, template="one_time_code"
        )
    ]
    assert (code.template, code.status) == ("one_time_code", "delivered")
    added = await admin.subscribers.add_kyc_document(
        subscriber_id, document_type="selfie", image=PNG.getvalue()
    )
    documents = [document async for document in admin.subscribers.list_kyc_documents(subscriber_id)]
    assert [document.document_id for document in documents] == [added.document_id]
    document = await admin.subscribers.get_kyc_document_image(subscriber_id, added.document_id)
    assert document.media_type.startswith("image/") and document.content
    (waiting,) = [person async for person in admin.subscribers.list(kyc_status="PENDING")]
    assert (waiting.id, documents[0].status) == (subscriber_id, "pending")
    timeline = [item async for item in admin.subscribers.get_timeline(subscriber_id, kind="kyc")]
    assert "subscriber.kyc_document_added" in [item.event for item in timeline]
    (review,) = [review async for review in admin.subscribers.list_kyc_reviews()]
    assert (review.subscriber_id, review.assignee) == (subscriber_id, None)
    assert (await admin.subscribers.assign_kyc_review(subscriber_id)).assignee
    assert (await admin.subscribers.unassign_kyc_review(subscriber_id)).assignee is None
    rejected = await admin.subscribers.decide_kyc(
        subscriber_id, decision="reject", reason="unreadable"
    )
    assert rejected.subscriber.kyc_status == "REJECTED"
    await call_restricted_operations(client_factory, admin, people["b"])
    return people


async def call_restricted_operations(
    client_factory: ClientFactory, admin: AsyncTapgateClient, subscriber_id: str
) -> None:
    await admin.subscribers.update(subscriber_id, restricted=True, kyc_level=2)
    with pytest.raises(PermissionDeniedError) as denied:
        await admin.subscribers.get(subscriber_id)
    assert denied.value.code == "OTP_REQUIRED"
    await admin.subscribers.request_restricted_access(subscriber_id)
    newest = await client_factory.services.database.fetchval(
        "SELECT phone_number FROM subscribers ORDER BY id DESC LIMIT 1"
    )
    code = await client_factory.harness.get_pending_code(newest)
    await admin.subscribers.verify_restricted_access(subscriber_id, otp=code)
    await admin.subscribers.update(subscriber_id, restricted=False)
    assert len([item async for item in admin.subscribers.list(limit=1)]) == 2


async def call_undo_operations(
    client_factory: ClientFactory, admin: AsyncTapgateClient, people: dict[str, str]
) -> None:
    async with client_factory.create_for_service() as messenger:

        async def send() -> str:
            sent = await messenger.wallet.transfer_p2p(
                sender_id=people["a"], recipient_card_serial="TAP-B", amount="10", pin=PIN
            )
            return sent.transaction_id

        transfer = await send()
        preview = await admin.transactions.get_reversal_preview(transfer, amount="4")
        assert (preview.allowed, preview.amount) == (True, "4.00")
        reversal = await admin.transactions.reverse(transfer, amount="4", reason="Wrong amount")
        assert reversal.reversible_amount == "6.00 SLE"
        recalls = messenger.recalls
        recall = await recalls.recall_transfer(await send(), pin=PIN, request_id="recall-1")
        pending = await recalls.list_pending_recalls(people["b"])
        assert [item.id for item in pending.data] == [recall.id]
        assert (await recalls.return_recalled_transfer(recall.id, pin=PIN)).status == "returned"
        recall = await recalls.recall_transfer(await send(), pin=PIN, request_id="recall-2")
        assert (await recalls.keep_recalled_transfer(recall.id)).status == "kept"
        recall = await admin.recalls.recall_transfer(await send(), request_id="recall-3")
    decided = await admin.recalls.decide(recall.id, decision="release", reason="Checked")
    found = await admin.recalls.get(recall.id)
    assert (found.decision, found.sender_id) == (decided.decision, people["a"])
    assert decided.id in [item.id async for item in admin.recalls.list(status="decided")]


async def call_wallet_operations(
    client_factory: ClientFactory,
    admin: AsyncTapgateClient,
    third_party: AsyncTapgateClient,
    people: dict[str, str],
) -> None:
    await client_factory.harness.deposit(people["a"], "1000")
    quote = await third_party.wallet.create_quote(
        type="transfer_p2p", amount="10", sender_id=people["a"]
    )
    assert quote.allowed
    sent = await third_party.wallet.transfer_p2p(
        sender_id=people["a"], recipient_card_serial="TAP-B", amount="10", pin=PIN
    )
    assert (await third_party.transactions.get(sent.transaction_id)).amount == "10.00"
    assert (await admin.subscribers.get_limits(people["a"])).daily.used == "10.00"
    ledger_entries = await admin.transactions.list_entries(sent.transaction_id)
    assert ledger_entries.entries[0].amount == "10.00"
    assert (await admin.transactions.get_chain(sent.transaction_id)).replays.count == 0
    resent = await admin.transactions.send_receipt(sent.transaction_id, party="sender")
    assert resent.recipients == ["sender"]
    from_account, to_account = [
        (await admin.wallet.get_balance(people[name])).account_id for name in "ab"
    ]
    moved = await third_party.wallet.transfer_funds(
        from_account_id=from_account, to_account_id=to_account, amount="5", pin=PIN
    )
    listed_ids = [found.id async for found in third_party.transactions.list(user_id=people["a"])]
    file = await third_party.transactions.export(user_id=people["a"], limit=1)
    assert moved.transaction_id.encode() in file.content and file.next_cursor is not None
    file = await third_party.transactions.export(user_id=people["a"], cursor=file.next_cursor)
    assert sent.transaction_id.encode() in file.content and file.next_cursor is None
    assert listed_ids[:2] == [moved.transaction_id, sent.transaction_id]
    await call_undo_operations(client_factory, admin, people)
    today = get_platform_day(
        client_factory.services.clock(), client_factory.services.settings.timezone
    )
    statement = await third_party.wallet.create_statement(
        subscriber_id=people["a"], from_date=today, to_date=today, format="csv"
    )
    assert statement.statement_url is not None
    token = urlsplit(statement.statement_url).path.rpartition("/")[2]
    file = await client_factory.create_async().wallet.download_statement(token)
    assert file.media_type.startswith("text/csv")


async def call_cash_out_request_operations(
    client_factory: ClientFactory, agent_id: str, subscriber_id: str
) -> None:
    async with client_factory.create_for_service() as messenger:
        requests = messenger.cash_out_requests

        async def ask(request_id: str) -> str:
            asked = await requests.request_cash_out(
                agent_id=agent_id,
                subscriber_id=subscriber_id,
                amount="5",
                agent_pin=AGENT_PIN,
                request_id=request_id,
            )
            return asked.id

        declined = await requests.decline_cash_out(await ask("cash-out-1"))
        assert declined.status == "declined"
        asked = await ask("cash-out-2")
        opened = await requests.list_open_cash_out_requests(subscriber_id)
        assert [item.id for item in opened.data] == [asked]
        assert (await requests.confirm_cash_out(asked, pin=PIN)).amount == "5.00 SLE"
        assert (await requests.get(asked)).status == "confirmed"


async def call_float_request_operations(
    client_factory: ClientFactory, admin: AsyncTapgateClient, agent_id: str
) -> None:
    async with client_factory.create_for_service() as messenger:

        async def ask() -> str:
            asked = await messenger.float_requests.request_float(agent_id, amount="10")
            return asked.id

        passed_on = await messenger.float_requests.pass_on(await ask())
        assert passed_on.waits_for == "finance"
        assert (await admin.float_requests.fund(passed_on.id)).amount == "10.00 SLE"
        sent = await messenger.float_requests.fund_by_transfer(await ask(), pin=AGENT_PIN)
        assert sent.amount == "10.00 SLE"
        cancelled = await messenger.float_requests.cancel(await ask())
        assert (await messenger.float_requests.get(cancelled.id)).status == cancelled.status
        declined = await admin.float_requests.decline(await ask(), reason="Deposit first")
        listed = admin.float_requests.list(agent_id=agent_id, status="declined")
        assert [item.id async for item in listed] == [declined.id]


async def call_agent_operations(
    client_factory: ClientFactory,
    admin: AsyncTapgateClient,
    third_party: AsyncTapgateClient,
    people: dict[str, str],
) -> None:
    created = await admin.agents.register(
        agent_type="super_agent",
        name="Main",
        phone_number=client_factory.harness.new_phone_number(),
        pin=AGENT_PIN,
    )
    top = created.agent_id
    sub = await admin.agents.register(
        agent_type="sub_agent",
        name="Corner",
        phone_number=client_factory.harness.new_phone_number(),
        pin=AGENT_PIN,
        parent_agent_id=top,
    )
    await admin.agents.fund(top, amount="500")
    await third_party.agents.transfer_float(
        from_agent_id=top, to_agent_id=sub.agent_id, amount="100", pin=AGENT_PIN
    )
    await call_float_request_operations(client_factory, admin, sub.agent_id)
    earned = await third_party.agents.cash_in(
        agent_id=top, amount="200", agent_pin=AGENT_PIN, subscriber_id=people["a"]
    )
    assert earned.commission_earned
    await third_party.agents.cash_out(
        agent_id=top, amount="50", agent_pin=AGENT_PIN, pin=PIN, card_serial="TAP-A"
    )
    await call_cash_out_request_operations(client_factory, top, people["a"])
    await admin.agents.pay_out_commission(top)
    assert (await admin.agents.get_balance(top)).float_balance
    assert [agent.id async for agent in admin.agents.list(parent_agent_id=top)] == [sub.agent_id]
    assert [item async for item in admin.agents.list_messages(top)] == []
    liquidity = await admin.agents.get_liquidity(parent_agent_id=top, limit=10)
    assert {agent.agent_id for agent in liquidity.data} == {top, sub.agent_id}
    await admin.agents.change_pin(top, old_pin=AGENT_PIN, new_pin=NEW_PIN)
    agent = await admin.agents.update(top, address="Kissy Road", commission_tier=3)
    assert [item.id async for item in admin.agents.list(address="kissy")] == [top]
    await admin.agents.request_pin_reset(top)
    await admin.agents.reset_pin(
        top,
        otp=await client_factory.harness.get_pending_code(agent.phone_number),
        new_pin=AGENT_PIN,
    )
    await admin.agents.suspend(sub.agent_id, reason="asked")
    await admin.agents.activate(sub.agent_id)
    other = await admin.agents.register(
        agent_type="super_agent",
        name="Gone",
        phone_number=client_factory.harness.new_phone_number(),
        pin=AGENT_PIN,
    )
    await admin.agents.terminate(other.agent_id, reason="asked")
    assert (await admin.agents.get(other.agent_id)).status == "terminated"


async def call_merchant_operations(
    client_factory: ClientFactory, admin: AsyncTapgateClient, people: dict[str, str]
) -> None:
    created = await admin.processors.create(
        name="Shop",
        phone_number=client_factory.harness.new_phone_number(),
        email="shop@example.com",
    )
    processor = created.processor_id
    terminal = client_factory.create_async(PosKey(created.api_key_id, created.hmac_secret))
    assert (await terminal.pos.look_up_card(card_identifier="TAP-A")).card_serial == "TAP-A"
    assert (await terminal.pos.verify_card(card_serial="TAP-A", pin=PIN)).balance is not None
    paid = await terminal.pos.pay(
        card_serial="TAP-A", amount="20", pin=PIN, metadata={"table": 4}, transaction_ref="T-1"
    )
    assert paid.metadata == {"table": 4}
    outcome = await terminal.pos.get_payment_outcome(paid.request_id)
    assert (outcome.transaction_id, outcome.metadata) == (paid.transaction_id, paid.metadata)
    await terminal.pos.refund_payment(
        original_transaction_id=paid.transaction_id, reason="broken", amount="5"
    )
    assert (await terminal.in_app_payments.look_up_card(card_identifier="TAP-A")).status
    assert not (await terminal.in_app_payments.verify_card(card_serial="TAP-A")).balance
    bought = await terminal.in_app_payments.pay(card_serial="TAP-A", amount="1")
    await terminal.in_app_payments.refund_payment(
        original_transaction_id=bought.transaction_id, reason="broken"
    )
    returned = await admin.transactions.refund(paid.transaction_id, reason="broken", amount="5")
    assert returned.refundable_amount == "10.00 SLE"
    await call_dispute_operations(admin, terminal)
    await call_card_proof_operations(admin, terminal)
    found = [
        transaction.id
        async for transaction in admin.transactions.list_processor_transactions(processor)
    ]
    assert paid.transaction_id in found
    await admin.processors.transfer(processor, subscriber_id=people["b"], amount="5")
    added = await admin.processors.add_terminal(processor, name="Till 1")
    await admin.processors.block_terminal(processor, added.terminal.id)
    await admin.processors.unblock_terminal(processor, added.terminal.id, reason="found")
    expected = [added.terminal.id]
    assert [item.id async for item in admin.processors.list_terminals(processor)] == expected
    spare = await admin.processors.create_signing_key(processor, terminal_id=added.terminal.id)
    await admin.processors.delete_signing_key(processor, spare.api_key_id)
    keys = {entry.api_key_id async for entry in admin.processors.list_signing_keys(processor)}
    assert keys == {created.api_key_id, added.api_key_id}
    await admin.processors.suspend(processor, reason="asked")
    await admin.processors.activate(processor)
    assert (await admin.processors.get(processor)).status
    assert [element.id async for element in admin.processors.list()] == [processor]
    assert (await admin.processors.get_summary(processor)).processor_id == processor
    assert (await admin.transactions.get_totals(user_id=processor, flow="payments")).is_complete
    assert (await admin.processors.get_totals(status="active")).count == 1
    assert (await admin.agents.get_totals(status="active")).count == 2
    assert (await admin.partners.get_totals()).currency == "SLE"


async def call_replacement_operations(
    client_factory: ClientFactory, admin: AsyncTapgateClient, people: dict[str, str]
) -> None:
    client_factory.harness.advance_clock(minutes=2)  # a phone gets one code a minute
    await admin.cards.upload(b"Serial No.,MAC Address\nTAP-SPARE,\n")
    owner = await admin.subscribers.get(people["b"])
    blocked = await admin.cards.replace("TAP-B", reason="lost")
    assert blocked.card.status == "LOST"
    code = await client_factory.harness.get_pending_code(owner.phone_number)
    replaced = await admin.cards.confirm_replacement("TAP-B", card_serial="TAP-SPARE", otp=code)
    assert replaced.card.subscriber_id == people["b"]


async def call_card_proof_operations(
    admin: AsyncTapgateClient, terminal: AsyncTapgateClient
) -> None:
    keyset = await admin.cards.create_keyset(name="Bureau")
    await admin.cards.upload(b"Serial No.,MAC Address\nTAP-D,04:DE:5F:1E:AC:C0:40\n")
    issued = await admin.cards.personalize("TAP-D", keyset_id=keyset.id)
    assert issued.keys.k0 not in repr(issued)
    keys = (bytes.fromhex(key) for key in (issued.uid, issued.keys.k2, issued.keys.k1))
    chip = SoftwareCard(*keys)
    confirmed = await admin.cards.confirm_personalization("TAP-D", card_proof=chip.tap())
    assert confirmed.authenticity == "sun"
    proof = chip.tap()
    url = f"https://pay.example/t?picc_data={proof.picc_data}&cmac={proof.cmac}"
    assert (await terminal.pos.look_up_card(card_proof=url)).card_serial == "TAP-D"
    assert not (await terminal.in_app_payments.verify_card(card_proof=proof)).is_active
    assert [tap.result for tap in (await admin.cards.list_taps("TAP-D")).data] == ["accepted"]
    assert (await admin.cards.get_keyset(keyset.id)).cards == 1
    assert (await admin.cards.retire_keyset(keyset.id, cards=1)).status == "retired"
    assert [item.id async for item in admin.cards.list_keysets()] == [keyset.id]


async def call_owner_operations(client_factory: ClientFactory, admin: AsyncTapgateClient) -> None:
    shop = await create_merchant(client_factory.harness)
    auth = await client_factory.harness.create_owner_user("M", shop)
    manager = client_factory.create_async(AccessToken(auth.credential))
    owner = await manager.owners.get_own()
    asked = await manager.support.ask(text="Why?")
    continued = await manager.support.add_message(asked.id, text="And when?")
    assert len(continued.messages) == 2
    assert (owner.id, owner.type) == (shop, "processor")
    today = get_platform_day(
        client_factory.services.clock(), client_factory.services.settings.timezone
    ).isoformat()
    statement = await manager.wallet.create_owner_statement(from_=today, to=today)
    assert statement.owner.id == shop


async def call_partner_operations(
    client_factory: ClientFactory, admin: AsyncTapgateClient, people: dict[str, str]
) -> None:
    created = await admin.partners.create(name="Bank", overdraft_limit="0")
    partner = created.partner.id
    await admin.partners.fund(partner, amount="100")
    bank = client_factory.create_async(PartnerKey(created.api_key_id, partner, created.hmac_secret))
    await bank.partners.fund_from_partner(
        partner_reference="R-1", amount="10", subscriber_id=people["b"]
    )
    await client_factory.create_async().partner_webhooks.send(
        partner, created.webhook_secret, reference="R-2", amount="10", card_serial="TAP-B"
    )
    assert (await admin.partners.get(partner)).balance == "80.00"
    set_peer(client_factory.services, "south", partner)
    found = await bank.books.look_up(card_serial="TAP-B")
    assert (found.book, found.subscriber_id) == ("north", people["b"])
    assert (await bank.books.get_position()).book == "north"
    report = await admin.books.get_report()
    assert [row.book for row in report.books] == ["south"]
    assert [row async for row in admin.books.list_number_conflicts()] == []
    received = await bank.books.receive_transfer(
        request_id="T-1", recipient_id=people["b"], sender_name="Fatu S.", amount="1"
    )
    assert (received.status, received.amount) == ("completed", "1.00 SLE")
    cancelled = await bank.books.cancel_transfer(
        request_id="T-1", recipient_id=people["b"], amount="1"
    )
    assert cancelled.transaction_id == received.transaction_id
    await call_book_transfer_operations(client_factory, admin, partner, people)
    await admin.partners.fund(partner, amount="1")
    assert (await admin.partners.update(partner, overdraft_limit="5")).overdraft_limit == "5.00"
    key = await admin.partners.create_key(partner)
    assert key.api_key_id in [item.api_key_id async for item in admin.partners.list_keys(partner)]
    await admin.partners.delete_key(partner, key.api_key_id)
    rotated = await admin.partners.rotate_webhook_secret(partner, grace_seconds=60)
    assert rotated.webhook_secret != created.webhook_secret
    await admin.partners.suspend(partner)
    await admin.partners.activate(partner, reason="asked")
    assert [entry.id async for entry in admin.partners.list()] == [partner]


async def call_book_transfer_operations(
    client_factory: ClientFactory, admin: AsyncTapgateClient, partner: str, people: dict[str, str]
) -> None:
    transfer = await send_elsewhere(client_factory.services, partner, people["b"], "1")
    assert [row.id async for row in admin.books.list_transfers()] == [transfer]
    assert (await admin.books.get_transfer(transfer)).can_return
    assert (await admin.books.retry_transfer(transfer)).status == "pending"
    assert not (await admin.books.return_transfer(transfer, reason="closed")).can_return


async def call_compliance_operations(
    client_factory: ClientFactory, admin: AsyncTapgateClient, people: dict[str, str]
) -> None:
    fees = await admin.fee_rules.get()
    assert await admin.fee_rules.replace(fees.data) == fees
    commissions = await admin.commission_rules.get()
    assert await admin.commission_rules.replace(commissions.data) == commissions
    codes = await admin.general_ledger.get_gl_codes()
    wallet = GlCodeUpdate(kind="wallet", gl_code="2100")
    assert await admin.general_ledger.update_gl_codes([wallet]) == codes
    assert len((await admin.general_ledger.get_ledger_accounts()).data) == len(codes.data)
    trial_balance = await admin.general_ledger.get_trial_balance(as_of=date(2026, 1, 31))
    assert trial_balance.totals.debit == trial_balance.totals.credit
    journal = await admin.general_ledger.export_ledger_journal(day=date(2026, 1, 31), format="csv")
    assert (journal.media_type, journal.next_cursor) == ("text/csv; charset=utf-8", None)
    payment_fees = [tier for tier in fees.data if tier.type == "pos_payment"]
    assert await admin.fee_rules.replace_of_type("pos_payment", payment_fees) == fees
    level = await admin.account_rules.get(3)
    updated = await admin.account_rules.update(3, requirements=["passport"])
    assert (updated.requirements, updated.daily_limit) == (["passport"], level.daily_limit)
    check_result = await admin.compliance.check(
        subscriber_id=people["a"], amount="10", transaction_type="transfer_p2p"
    )
    assert check_result.allowed
    created = await admin.compliance.create_alert(
        alert_type="asks_for_person", details={"a": 1}, subscriber_id=people["a"]
    )
    await admin.compliance.investigate_alert(created.alert_id, note="looked")
    assert (await admin.compliance.assign_alert(created.alert_id)).alert.assignee
    assert (await admin.compliance.unassign_alert(created.alert_id)).alert.assignee is None
    await admin.compliance.resolve_alert(
        created.alert_id, status="resolved", resolution_notes="called back"
    )
    assert (await admin.compliance.get_alert(created.alert_id)).status == "resolved"
    found = [item.id async for item in admin.compliance.list_alerts(subscriber_id=people["a"])]
    assert found == [created.alert_id]
    rule, *_ = [entry async for entry in admin.compliance.list_rules(limit=2)]
    assert await admin.compliance.get_rule(rule.id) == rule
    assert (await admin.compliance.update_rule(rule.id, name="Another")).name == "Another"
    rule = await admin.compliance.create_rule(
        name="Busy agent",
        type="TRANSACTION_COUNT",
        subject="agent",
        transaction_types=["agent_cashin"],
        threshold=500,
        window_seconds=86_400,
        action="alert",
    )
    assert (rule.subject, rule.status) == ("agent", "active")
    await admin.compliance.delete_rule(rule.id)
    await call_support_operations(client_factory, admin)
    await call_webhook_endpoint_operations(admin)


async def call_approval_operations(
    client_factory: ClientFactory, admin: AsyncTapgateClient
) -> None:
    agent = (await create_agent(client_factory.harness))["id"]
    rule = ApprovalRule(operation="agent_fund", above="50.00", roles=["finance_user"])
    await create_approvers(client_factory.harness, msgspec.to_builtins(rule))
    assert (await admin.approvals.replace_rules([rule])).data == [rule]
    assert "agent_fund" in (await admin.approvals.get_rules()).operations
    held = []
    for _ in range(3):
        with pytest.raises(ApprovalRequiredError) as raised:
            await admin.agents.fund(agent, amount="60")
        held.append(raised.value.approval.id)
    approver = await client_factory.create_for_admin("F")
    assert (await approver.approvals.approve_request(held[0])).status == "executed"
    assert (await approver.approvals.reject_request(held[1], reason="Twice")).status == "rejected"
    assert (await admin.approvals.cancel_request(held[2])).status == "cancelled"
    listed = approver.approvals.list(operation="agent_fund", resource_id=agent)
    assert [item.id async for item in listed] == held[::-1]
    assert (await admin.approvals.get(held[0])).amount == "60.00"


async def call_support_operations(client_factory: ClientFactory, admin: AsyncTapgateClient) -> None:
    phone = "+23276888001"
    async with client_factory.create_for_service() as messenger:
        send = messenger.support.receive_message
        request = await send(phone_number=phone, text="Hello")
        appended = await send(phone_number=phone, text="?", append_only=True)
    assert (appended.id, [message.from_ for message in appended.messages]) == (
        request.id,
        ["customer", "customer"],
    )
    await call_veto_operation(client_factory, admin)
    # The third one is a merchant's.
    assert (await admin.support.get_summary()).open == 3
    queues = await admin.work_queues.get(fresh=True)
    assert {queue.name: queue.waiting for queue in queues.data}["support_requests"] == 3
    items = await admin.work_queues.list_work_items(fresh=True)
    assert request.id in {item.id for item in items.data}
    await admin.support.assign_request(request.id)
    assert (await admin.support.unassign_request(request.id)).assignee is None
    assigned = await admin.support.assign_request(request.id)
    answered = await admin.support.reply_to_request(request.id, text="Hi")
    assert (answered.status, answered.assignee) == ("answered", assigned.assignee)
    assert await admin.support.get_request(request.id) == answered
    listed = admin.support.list_requests(
        status="answered", assignee=answered.assignee, phone_number=phone
    )
    assert [item.id async for item in listed] == [request.id]
    assert (await admin.support.close_request(request.id)).status == "closed"
    await call_saved_reply_operations(admin)


async def call_saved_reply_operations(admin: AsyncTapgateClient) -> None:
    reply = await admin.support.create_saved_reply(
        label="Hours", texts=SavedReplyTexts(en="From 8 to 18.")
    )
    changed = await admin.support.update_saved_reply(reply.id, position=1)
    assert await admin.support.get_saved_reply(reply.id) == changed
    assert (await admin.support.list_saved_replies()).data[0] == changed
    await admin.support.delete_saved_reply(reply.id)
    assert reply.id not in {item.id for item in (await admin.support.list_saved_replies()).data}


async def call_veto_operation(client_factory: ClientFactory, admin: AsyncTapgateClient) -> None:
    customer = await client_factory.harness.create_subscriber()
    number = client_factory.harness.new_phone_number()
    await admin.subscribers.update(customer["id"], phone_number=number)
    async with client_factory.create_for_service() as messenger:
        disputed = await messenger.subscribers.dispute_phone_change(
            customer["id"], phone_number=customer["phone_number"]
        )
    assert disputed.status_reason == "phone_change_disputed"


async def call_dispute_operations(admin: AsyncTapgateClient, terminal: AsyncTapgateClient) -> None:
    disputes = []
    for number in range(3):
        paid = await terminal.pos.pay(card_serial="TAP-A", amount="1", pin=PIN)
        create = admin.disputes.create
        disputes.append(
            await create(
                transaction_id=paid.transaction_id, reason="other", request_id=f"dispute-{number}"
            )
        )
    first, second, third = disputes
    assert (await terminal.disputes.respond(first.id, text="Sent")).status == "answered"
    rejected = await admin.disputes.decide(first.id, decision="reject", reason="Sent")
    assert rejected.overdue is False
    accepted = await terminal.disputes.respond(second.id, text="Sorry", accept=True)
    assert accepted.status == "refunded"
    assert (await admin.disputes.withdraw(third.id)).status == "withdrawn"
    assert (await terminal.disputes.get(second.id)).merchant_response == "Sorry"
    listed = [item.id async for item in admin.disputes.list(status="refunded")]
    assert listed == [second.id]


async def call_webhook_endpoint_operations(admin: AsyncTapgateClient) -> None:
    endpoint = await admin.webhooks.create_endpoint(url="http://127.0.0.1:9/", events=["*"])
    assert (await admin.webhooks.get_endpoint(endpoint.id)).url == endpoint.url
    tested = await admin.webhooks.send_test_event(endpoint.id)
    assert (tested.event, tested.status) == ("webhook.test", "pending")
    paused = await admin.webhooks.update_endpoint(endpoint.id, events=["*"], status="paused")
    assert (paused.status, paused.url) == ("paused", endpoint.url)
    assert (await admin.webhooks.update_endpoint(endpoint.id, status="active")).status == "active"
    rotated = await admin.webhooks.rotate_secret(endpoint.id, grace_seconds=60)
    assert rotated.secret not in (endpoint.secret, repr(rotated))
    await admin.cards.block("TAP-C", reason="lost")
    assert [item.id async for item in admin.webhooks.list_endpoints()] == [endpoint.id]
    delivery, _ = [item async for item in admin.webhooks.list_deliveries(endpoint.id)]
    details = await admin.webhooks.get_delivery(endpoint.id, delivery.id)
    assert details.payload is not None and details.payload["type"] == "card.blocked"
    redelivered = await admin.webhooks.redeliver_event(endpoint.id, delivery.id)
    assert (redelivered.id, redelivered.event) == (delivery.id, "card.blocked")
    period = await admin.webhooks.redeliver_period(
        endpoint.id, from_="2026-01-01", to="2026-01-02", status="delivered"
    )
    assert (period.redelivered, period.complete) == (0, True)
    await admin.webhooks.delete_endpoint(endpoint.id)


async def call_closing_operations(admin: AsyncTapgateClient, people: dict[str, str]) -> None:
    with pytest.raises(ConflictError) as conflict:
        await admin.subscribers.close(people["a"], reason="asked")
    assert conflict.value.code == "NOT_CLOSABLE"
    created = await admin.subscribers.register(
        phone_number="+23277999999", first_name="Musa", last_name="Sesay", pin=PIN
    )
    closed = await admin.subscribers.close(created.subscriber_id, reason="asked")
    assert closed.subscriber.status == "CLOSED"
    (newest,) = (await admin.admin.list_request_logs(limit=1).get_page()).data
    assert (await admin.admin.get_request_log(newest.id)).endpoint == newest.endpoint
    entries = [item async for item in admin.audit.list_entries(resource_id=created.subscriber_id)]
    assert entries
    assert (await admin.audit.verify_chain()).valid
    proof = await admin.overview.verify_ledger()
    assert proof.holds, proof.claims
    overview = await admin.overview.get(period="week")
    assert not (await admin.overview.get_onboarding()).open
    assert not (await admin.overview.dismiss_onboarding()).open
    assert not (await admin.overview.skip_onboarding_step("webhook")).open
    assert (await admin.search.search_records(q="no such record")).data == []
    assert overview.ledger.last_proof is not None
    assert overview.ledger.last_proof.transactions == proof.transactions == overview.totals.count
