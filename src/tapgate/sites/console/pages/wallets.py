"""Wallet actions. The forms open on the customer's page."""

from functools import partial

from tapgate.sites.console.actions import Action
from tapgate.sites.console.form_fields import Field

_SUBSCRIBER = Field("subscriber_id", kind="hidden")
_AMOUNT = Field("amount", kind="money")
_CARD_HINT = "Serial number, printed on the card"
_DAY_HINT = "In the platform's time zone"

_build_money_action = partial(Action, moves_money=True, message_field="message")

ACTIONS = (
    _build_money_action(
        name="wallet.send",
        endpoint="POST /api/v1/wallet/transfer-p2p",
        title="Send money",
        description="Sends money to another customer. Enter the recipient's phone number or card. "
        "The transfer fee applies. Ask the sender to enter their PIN.",
        fields=(
            Field("sender_id", "Sender", "hidden"),
            Field(
                "recipient_phone_number",
                "Recipient's phone number",
                "tel",
                hint="For example, 076 123 456",
                required=False,
            ),
            Field("recipient_card_serial", "Recipient's card", hint=_CARD_HINT, required=False),
            _AMOUNT,
            Field("memo", required=False, hint="Visible to both parties"),
            Field("pin", "Sender's PIN", "pin"),
        ),
    ),
    _build_money_action(
        name="wallet.transfer",
        endpoint="POST /api/v1/wallet/transfer",
        title="Transfer between accounts",
        description="Manual adjustment between any two accounts, including the platform's. If the "
        "payer is a customer, their PIN is required.",
        button="Transfer",
        fields=(
            Field("from_account_id", "From account", "picker", picks="account"),
            Field("to_account_id", "To account", "picker", picks="account"),
            _AMOUNT,
            Field("description", required=False),
            Field("pin", "Payer's PIN", "pin", required=False),
        ),
        is_dangerous=True,
    ),
    _build_money_action(
        name="wallet.top_up",
        endpoint="POST /api/v1/wallet/fund-from-partner",
        title="Top up from partner",
        description="Debits the partner's account. Each reference can be used only once.",
        fields=(
            _SUBSCRIBER,
            Field("partner_id", "Partner", "picker", picks="partner"),
            Field("partner_reference", "Partner's reference"),
            _AMOUNT,
        ),
    ),
    _build_money_action(
        name="wallet.cash_in",
        endpoint="POST /api/v1/agents/cashin",
        title="Cash in",
        description="The agent takes cash and funds the wallet from their float. Ask the agent to "
        "enter their PIN.",
        fields=(
            _SUBSCRIBER,
            Field("agent_id", "Agent", "picker", picks="agent"),
            _AMOUNT,
            Field("agent_pin", "Agent's PIN", "pin"),
        ),
    ),
    _build_money_action(
        name="wallet.cash_out",
        endpoint="POST /api/v1/agents/cashout",
        title="Cash out",
        description="The agent hands out cash and the wallet is debited. Ask the customer and the "
        "agent to enter their PINs.",
        fields=(
            _SUBSCRIBER,
            Field("agent_id", "Agent", "picker", picks="agent"),
            _AMOUNT,
            Field("pin", "Customer's PIN", "pin"),
            Field("agent_pin", "Agent's PIN", "pin"),
        ),
    ),
    Action(
        name="wallet.statement",
        endpoint="POST /api/v1/wallet/account-statement",
        title="Create statement",
        description="All transactions in a period of up to one year.",
        fields=(
            _SUBSCRIBER,
            Field("from_date", "From", "date", hint=_DAY_HINT),
            Field("to_date", "To", "date", hint=_DAY_HINT),
            Field("format", kind="choice", choices=(("pdf", "PDF"), ("csv", "CSV"))),
        ),
        success_message="Statement ready",
        result_template="subscribers/statement.html",
    ),
    Action(
        name="wallet.quote",
        endpoint="POST /api/v1/wallet/quote",
        title="Fee preview",
        description="Shows the fee, the limits left and whether the payment would be allowed now. "
        "No money moves.",
        button="Preview fee",
        fields=(
            Field("sender_id", "Sender", "hidden"),
            Field(
                "type",
                kind="choice",
                choices=("transfer_p2p", "pos_payment", "online_payment", "agent_cashout"),
            ),
            _AMOUNT,
            Field(
                "card_serial",
                "Customer's card",
                hint="For card payments and cash-out",
                required=False,
            ),
            Field(
                "recipient_card_serial", "Recipient's card", hint="For transfers", required=False
            ),
        ),
        success_message="Fee:",
        result_template="subscribers/quote.html",
    ),
)
