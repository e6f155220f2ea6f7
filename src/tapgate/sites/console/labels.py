"""Labels for the API's values: transaction types, statuses, decline codes and roles."""

import re
from collections.abc import Mapping
from typing import Final, cast

from tapgate.ledger import chart
from tapgate_client import ids
from tapgate_client.errors import TABLE, Code
from tapgate_client.schemas.transactions import MoneyFlow

_LABELS: Final[Mapping[str, str]] = {
    chart.TRANSFER_P2P: "Send money",
    chart.TRANSFER: "Manual transfer",
    chart.AGENT_CASHIN: "Cash-in",
    chart.AGENT_CASHOUT: "Cash-out",
    chart.AGENT_FUND: "Float top-up",
    chart.AGENT_TRANSFER: "Float transfer",
    chart.PARTNER_FUND: "Partner top-up",
    chart.PROCESSOR_TRANSFER: "Merchant payout",
    chart.PAYOUT: "Payout",
    chart.PAYOUT_RETURN: "Returned payout",
    chart.BATCH_CREDIT: "Batch payment",
    chart.BANK_POSTING: "Bank posting",
    "connection_closed": "Connection closed without a response",
    "connection_failed": "Could not connect",
    "host_not_found": "Host name not found",
    "http_status": "HTTP error",
    "invalid_response": "Invalid HTTP response",
    "tls_failed": "TLS error, such as an invalid certificate",
    "url_rejected": "URL not allowed",
    "in_app": "In-app",
    "transaction.failed": "Transaction declined",
    "PIN_FAILURES": "Wrong PINs",
    "account_rule": "Account limits",
    "account_rules": "Account limits",
    "admin": "Administrator",
    "admin_users": "Administrators",
    "parent_agent_id": "Super-agent",
    "parent_subscriber_id": "Parent",
    "subscriber_id": "Customer",
    "subscriber_phone": "Customer's phone number",
    "agent_phone": "Agent phone numbers, tiers and reactivation",
    "merchant_keys": "Merchants, terminals and their keys",
    "review_release": "Release of held payments",
    "gl_codes": "GL codes",
    "bank_accounts": "Verification of bank accounts",
    "mt940": "MT940",
    "YYYYMMDD": "YYYYMMDD",
    "sub_agent": "Sub-agent",
    "super_agent": "Super-agent",
    "PARENT": "Primary",
    "NONE": "Not verified",
    "DRIVERS_LICENSE": "Driver's license",
    "system_admin": "System admin",
    "compliance_user": "Compliance",
    "support_user": "Support",
    "finance_user": "Finance",
    "merchant_manager": "Manager",
    "merchant_cashier": "Cashier",
    "partner_user": "Partner",
    "agent_user": "Agent",
    "owner_id": "Owner",
    "receiver": "Recipient",
    "data": "Rules",
    "expires_in": "Expires after",
    "grace_seconds": "Grace period",
    "window_seconds": "Period",
}

_FLOW_LABELS: Final[Mapping[str, str]] = {
    MoneyFlow.PAYMENTS: "Payments",
    MoneyFlow.MONEY_IN: "Money in",
    MoneyFlow.MONEY_OUT: "Money out",
    MoneyFlow.REFUNDS: "Refunds",
    MoneyFlow.INTERNAL: "Internal moves",
}

#: Words that are spelled or named differently in labels.
_WORDS: Final[Mapping[str, str]] = {
    word.lower(): word
    for word in (
        "API",
        "CSV",
        "ID",
        "IP",
        "KYC",
        "NFC",
        "OTP",
        "P2P",
        "PIN",
        "POS",
        "SMS",
        "UID",
        "URL",
    )
} | {
    "vip": "VIP",
    "cashin": "cash-in",
    "cashout": "cash-out",
    "subscriber": "customer",
    "processor": "merchant",
}

#: Terms in the API's messages for which the console uses different words.
_TERMS: Final[Mapping[str, str]] = {
    "subscriber": "customer",
    "processor": "merchant",
    "receiver": "recipient",
}
_TERM: Final = re.compile(rf"\b({'|'.join(_TERMS)})(?=s?\b)", re.IGNORECASE)
_CODE: Final = re.compile(rf"\b({'|'.join(Code)})\b")

_DECLINE_REASONS: Final[Mapping[str, str]] = {
    Code.SUBSCRIBER_BLOCKED: "Customer not active",
    Code.CARD_NOT_ACTIVE: "Card not active",
    Code.AGENT_NOT_ACTIVE: "Agent not active",
    Code.PROCESSOR_SUSPENDED: "Merchant suspended",
    Code.PARTNER_SUSPENDED: "Partner suspended",
    Code.COMPLIANCE_REJECTED: "Rejected by compliance",
    Code.TRANSACTION_LIMIT_EXCEEDED: "Over the transaction limit",
    Code.CARD_LIMIT_EXCEEDED: "Over the card's daily limit",
    Code.DAILY_LIMIT_EXCEEDED: "Over the daily limit",
    Code.MONTHLY_LIMIT_EXCEEDED: "Over the monthly limit",
    Code.MAX_BALANCE_EXCEEDED: "Over the recipient's maximum balance",
}

#: Chat command labels.
CHAT_COMMAND_LABELS: Final[Mapping[str, str]] = {
    "menu": "Menu",
    "help": "Help",
    "balance": "Balance",
    "send": "Send money",
    "history": "History",
    "statement": "Statement",
    "cards": "Cards",
    "link": "Link card",
    "block": "Block card",
    "unblock": "Unblock card",
    "change_pin": "Change PIN",
    "reset_pin": "Reset PIN",
    "kyc": "Identity documents",
    "limits": "Limits",
    "add_money": "Add money",
    "withdraw": "Withdraw",
    "nearest_agent": "Find an agent",
    "fees": "Fees",
    "declined": "Declined payment",
    "not_arrived": "Money not arrived",
    "wrong_recipient": "Wrong recipient",
    "return_money": "Return money",
    "keep_money": "Keep money",
    "dispute": "Dispute payment",
    "proof": "Payment proof",
    "not_me": "Object to phone change",
    "opt_out": "Stop messages",
    "opt_in": "Start messages",
    "pin_safety": "Question about PIN safety",
    "change_number": "Change phone number",
    "airtime": "Airtime",
    "bills": "Bills",
    "loans": "Loans",
    "contact": "Support contact",
    "language": "Language",
    "person": "Talk to a person",
    "register": "Register",
    "confirm_cash_out": "Confirm cash-out",
    "agent_menu": "Agent menu",
    "own_wallet": "Own wallet",
    "float": "Float and today",
    "cash_in": "Cash-in for a customer",
    "cash_out": "Cash-out for a customer",
    "commission": "Pay out commission",
    "request_float": "Request float",
    "float_requests": "Float requests",
}

#: Resource labels, by ID prefix or path parameter name.
_RESOURCE_LABELS: Final[Mapping[str, str]] = {
    ids.SUBSCRIBER: "Customer",
    ids.AGENT: "Agent",
    ids.PROCESSOR: "Merchant",
    ids.TERMINAL: "Terminal",
    ids.BANK_ACCOUNT: "Bank account",
    ids.PAYOUT: "Payout",
    ids.PAYOUT_RUN: "Payout run",
    ids.TRANSACTION: "Transaction",
    ids.RECALL: "Recall",
    ids.PARTNER: "Partner",
    ids.ALERT: "Alert",
    ids.RULE: "Rule",
    ids.ADMIN: "Administrator",
    ids.KEY: "API key",
    ids.WEBHOOK_ENDPOINT: "Webhook endpoint",
    ids.CARD_KEYSET: "Keyset",
    ids.DELIVERY: "Delivery",
    ids.RECALL: "Recall",
    ids.REQUEST_LOG: "Request",
    ids.SUPPORT_REQUEST: "Support request",
    ids.SAVED_REPLY: "Saved reply",
    ids.CASH_OUT_REQUEST: "Cash-out request",
    ids.DISPUTE: "Dispute",
    ids.FLOAT_REQUEST: "Float request",
    "serial": "Card",
    "api_key_id": "Signing key",
}


def humanize(name: str | None) -> str:
    """Return a label for a name such as `under_review`, `NATIONAL_ID` or `card.linked`."""
    if not name:
        return "–"
    if name in _LABELS:
        return _LABELS[name]
    text = name.replace("_", " ").replace(".", " ")
    words = (text.lower() if name.isupper() else text).split(" ")
    label = " ".join(_WORDS.get(word.lower(), word) for word in words)
    return label[0].upper() + label[1:]


def use_console_terms(message: str) -> str:
    """Replace error codes, and terms such as `subscriber`, in an API message with labels."""

    def get_term(match: re.Match[str]) -> str:
        term = _TERMS[match[0].lower()]
        return term.capitalize() if match[0][0].isupper() else term

    text = _CODE.sub(lambda match: get_decline_reason(match[0]).lower(), message)
    return _TERM.sub(get_term, text)


def get_state_label(value: str | None, noun: str = "") -> str:
    """Return a status label. `noun` is the type of its record, such as `transaction`."""
    if noun == "transaction" and value is not None:
        return get_transaction_status_label(value)
    return humanize(value)


def get_transaction_status_label(status: str) -> str:
    return "Declined" if status == "failed" else humanize(status)


def get_decline_reason(code: str) -> str:
    """Return the reason for a decline, such as `Insufficient funds`."""
    entry = TABLE.get(cast(Code, code))
    return _DECLINE_REASONS.get(code) or (use_console_terms(entry[1]) if entry else humanize(code))


def get_chat_command_label(command: str) -> str:
    return CHAT_COMMAND_LABELS.get(command) or humanize(command)


def get_resource_label(parameter: str, value: str) -> str:
    """Return the kind of resource that a path parameter identifies, such as `Customer`."""
    prefix = value[: value.find("_") + 1]
    label = _RESOURCE_LABELS.get(prefix) or _RESOURCE_LABELS.get(parameter)
    return label or humanize(parameter)


def get_flow_label(flow: str) -> str:
    return _FLOW_LABELS[flow]
