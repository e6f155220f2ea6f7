"""Registers a subscriber, makes a signed payment and downloads a file with the generated client."""

import hashlib
import hmac
from datetime import UTC, datetime
from os import environ
from pathlib import Path

import httpx
from tapgate_client.api.admin import log_in
from tapgate_client.api.branding import get_branding_logo
from tapgate_client.api.cards import upload_cards
from tapgate_client.api.pos import pay_at_terminal
from tapgate_client.api.subscribers import register_subscriber
from tapgate_client.models import (
    Login,
    PaymentReceipt,
    PosPaymentRequest,
    Registration,
    SubscriberRegistered,
    Tokens,
    UploadCardsFilesCardUploadForm,
    UploadCardsResponse,
)
from tapgate_client.types import File

from tapgate_client import AuthenticatedClient, Client


def sign(request: httpx.Request) -> None:
    timestamp = datetime.now(UTC).isoformat()
    text = f"{request.method}\n{request.url.path}\n{timestamp}\n".encode() + request.content
    signature = hmac.new(environ["KEY_SECRET"].encode(), text, hashlib.sha256).hexdigest()
    request.headers["X-Timestamp"] = timestamp
    request.headers["X-Signature"] = signature


base_url = environ["BASE_URL"]
login = Login(email=environ["ADMIN_EMAIL"], password=environ["ADMIN_PASSWORD"])
tokens = log_in.sync(client=Client(base_url=base_url), body=login)
assert isinstance(tokens, Tokens), tokens
api = AuthenticatedClient(base_url=base_url, token=tokens.token)
registration = Registration(
    phone_number="+23276555003", first_name="Isatu", last_name="Bangura", pin="4071"
)
created = register_subscriber.sync(client=api, body=registration)
assert isinstance(created, SubscriberRegistered), created
with Path(environ["CARD_FILE"]).open("rb") as content:
    file = File(payload=content, file_name="cards.csv", mime_type="text/csv")
    uploaded = upload_cards.sync(client=api, body=UploadCardsFilesCardUploadForm(file=file))
assert isinstance(uploaded, UploadCardsResponse), uploaded
assert uploaded.created == 1
logo = get_branding_logo.sync(client=Client(base_url=base_url))
assert isinstance(logo, File), logo
assert logo.payload.read().startswith(b"\x89PNG")
terminal = AuthenticatedClient(
    base_url=base_url,
    token=environ["KEY_ID"],
    prefix="",
    auth_header_name="X-API-Key-ID",
    httpx_args={"event_hooks": {"request": [sign]}},
)
payment = PosPaymentRequest(card_serial=environ["CARD"], amount="12.50", request_id="python-1")
paid = pay_at_terminal.sync(client=terminal, body=payment)
assert isinstance(paid, PaymentReceipt), paid
print(created.subscriber.language.value, paid.status.value, paid.amount)
