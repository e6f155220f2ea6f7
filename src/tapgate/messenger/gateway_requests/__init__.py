"""Requests from the conversation engine, and how each is sent through the gateway's client.

The engine only creates requests. `perform` sends one and returns its outcome, which is the engine's
next event. The gateway makes all decisions about money. Names of other subscribers are masked here,
and so is the existence of cards that do not belong to the subscriber.
"""

from tapgate.messenger.gateway_requests.base import (
    GatewayRequest,
    perform,
)
from tapgate.messenger.gateway_requests.cards import (
    BlockCard,
    LinkCard,
    ListCards,
    UnblockCard,
    to_card,
)
from tapgate.messenger.gateway_requests.documents import (
    AddDocument,
    AddKeptDocument,
    CountKeptImages,
)
from tapgate.messenger.gateway_requests.pin_reset import (
    FindPinHolders,
    PinHolders,
    PinHolderType,
    RequestPinReset,
    ResetPin,
)
from tapgate.messenger.gateway_requests.subscribers import (
    ChangePin,
    FindLanguage,
    FindSubscriber,
    RegisterSubscriber,
    SendOneTimeCode,
    VerifyOneTimeCode,
    VerifyPin,
)
from tapgate.messenger.gateway_requests.support import (
    AgentSummary,
    ContactSupport,
    FindAgents,
    GetSupportContact,
    ReportProviderWarnings,
)
from tapgate.messenger.gateway_requests.transfers import (
    FindPayeeByCard,
    FindPayeeByPhone,
    Payee,
    QuoteTransfer,
    SendMoney,
    is_phone_payee,
)
from tapgate.messenger.gateway_requests.wallet import (
    CreateStatement,
    GetBalance,
    GetLastDecline,
    GetLimits,
    ListTransactions,
    TransactionSummary,
)

__all__ = (
    "AddDocument",
    "AddKeptDocument",
    "AgentSummary",
    "BlockCard",
    "ChangePin",
    "ContactSupport",
    "CountKeptImages",
    "CreateStatement",
    "FindAgents",
    "FindLanguage",
    "FindPayeeByCard",
    "FindPayeeByPhone",
    "FindPinHolders",
    "FindSubscriber",
    "GatewayRequest",
    "GetBalance",
    "GetLastDecline",
    "GetLimits",
    "GetSupportContact",
    "LinkCard",
    "ListCards",
    "ListTransactions",
    "Payee",
    "PinHolderType",
    "PinHolders",
    "QuoteTransfer",
    "RegisterSubscriber",
    "ReportProviderWarnings",
    "RequestPinReset",
    "ResetPin",
    "SendMoney",
    "SendOneTimeCode",
    "TransactionSummary",
    "UnblockCard",
    "VerifyOneTimeCode",
    "VerifyPin",
    "is_phone_payee",
    "perform",
    "to_card",
)
