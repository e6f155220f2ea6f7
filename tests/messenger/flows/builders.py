"""Flow requests as the provider's client sends them, and a handler for the submissions."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from tapgate.messenger.flows import data_endpoint, forms
from tapgate.messenger.flows.cipher import FlowKey
from tapgate.messenger.flows.flow_client import FlowClient
from tapgate.messenger.flows.forms import Form
from tapgate.messenger.model.events import FormSubmitted
from tapgate.messenger.model.replies import PinRequest
from tapgate.store.database import Database

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ADDRESS = "+23276000001"
CORRECT_PIN, WRONG_PIN, NEW_PIN = "4821", "9035", "6174"

#: Generated with OpenSSL and bare primitives, independently of the code under test.
TEST_VECTOR: dict[str, Any] = json.loads(Path(__file__).with_name("vector.json").read_bytes())
PRIVATE_PEM: str = TEST_VECTOR["private_key"]


#: Loaded once, because validating the key is slow.
FLOW_KEY = FlowKey(PRIVATE_PEM)
PUBLIC_PEM = (
    load_pem_private_key(PRIVATE_PEM.encode(), password=None)
    .public_key()
    .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    .decode()
)


@dataclass
class SubmissionResult:
    finished: bool
    text: str = ""


@dataclass
class FlowDriver:
    """Test driver that also serves as the services object of the data endpoint."""

    database: Database
    flow_key: FlowKey | None = FLOW_KEY
    now: datetime = NOW
    entries: list[FormSubmitted] = field(default_factory=list)
    failure: Exception | None = None
    wrong_pin_text: str = "Wrong PIN, 2 tries left."
    used_count: int = 0

    def clock(self) -> datetime:
        return self.now

    def advance_clock(self, **duration: float) -> None:
        self.now += timedelta(**duration)

    async def issue_form(
        self, form: str = "pin", language: str = "en", operation: str = "op"
    ) -> str:
        pin_request = PinRequest(
            text="10.00 SLE to Aminata K.", button="PIN", form=form, operation=operation
        )
        async with self.database.transaction() as tx:
            return await forms.issue(
                tx, address=ADDRESS, pin_request=pin_request, language=language, now=self.clock()
            )

    async def handle_entry(
        self, _: "FlowDriver", form: Form, submission: FormSubmitted
    ) -> SubmissionResult | None:
        """Record the submission, and mark the form as used unless the PIN is wrong."""
        self.entries.append(submission)
        if self.failure is not None:
            raise self.failure
        if submission.pin not in (None, CORRECT_PIN):
            return SubmissionResult(False, self.wrong_pin_text)
        async with self.database.transaction() as tx:
            if not await forms.mark_used(tx, form.token_hash, self.clock()):
                return None
            self.used_count += 1
        return SubmissionResult(True)

    async def send_request(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        client = FlowClient(PUBLIC_PEM)
        status, text = await data_endpoint.handle(self, client.encrypt(request), self.handle_entry)
        return status, client.decrypt(text)

    async def submit_form(self, token: str, **data: object) -> tuple[int, dict[str, Any]]:
        return await self.send_request(
            {"action": "data_exchange", "flow_token": token, "data": data}
        )


def build_success(token: str) -> tuple[int, dict[str, Any]]:
    params = {"flow_token": token}
    return 200, {"screen": "SUCCESS", "data": {"extension_message_response": {"params": params}}}


def split_words(text: str) -> list[str]:
    """Split into words, so that a PIN does not match digits inside a longer ID."""
    return "".join(char if char.isalnum() else " " for char in text).split()


async def dump_tables(database: Database) -> list[str]:
    tables = await database.fetch(
        "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables"
        " WHERE schemaname IN ('public', 'messenger') AND tablename <> 'schema_migrations'"
    )
    return [
        row["row"]
        for table in tables
        for row in await database.fetch(f"SELECT t::text AS row FROM {table['name']} t")
    ]
