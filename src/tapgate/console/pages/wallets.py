"""Wallet actions. The forms open on the subscriber's page."""

from tapgate.console.actions import Action, Field

_SUBSCRIBER = Field("subscriber_id", "Subscriber", "hidden")
_AMOUNT = Field("amount", "Amount", "money")
_DAY_HINT = "A day of the platform's time zone"

ACTIONS = (
    Action(
        name="wallet.send",
        endpoint="POST /api/v1/wallet/transfer-p2p",
        title="Send money to another card",
        description="From this wallet to that of the other card, with the fee of such a transfer. "
        "The sender types the PIN.",
        button="Send money",
        fields=(
            Field("sender_id", "Sender", "hidden"),
            Field("recipient_card_serial", "The receiver's card", hint="Its serial number"),
            _AMOUNT,
            Field("memo", "Memo", required=False, hint="Both of them read it"),
            Field("pin", "The sender's PIN", "pin"),
        ),
        message_field="message",
        moves_money=True,
    ),
    Action(
        name="wallet.transfer",
        endpoint="POST /api/v1/wallet/transfer",
        title="Transfer between accounts",
        description="To put something right by hand: between any two accounts, also the platform's "
        "own. The payer's PIN is needed where the payer is a subscriber.",
        button="Transfer",
        fields=(
            Field("from_account_id", "From account", hint="acc_…"),
            Field("to_account_id", "To account", hint="acc_…"),
            _AMOUNT,
            Field("description", "Why", required=False),
            Field("pin", "The payer's PIN", "pin", required=False),
        ),
        message_field="message",
        moves_money=True,
        is_dangerous=True,
    ),
    Action(
        name="wallet.top_up",
        endpoint="POST /api/v1/wallet/fund-from-partner",
        title="Fund from a partner",
        description=(
            "The partner's account pays. A reference is paid once, however often it is sent."
        ),
        button="Fund from a partner",
        fields=(
            _SUBSCRIBER,
            Field("partner_id", "Partner", hint="ptn_…"),
            Field("partner_reference", "The partner's reference"),
            _AMOUNT,
        ),
        message_field="message",
        moves_money=True,
    ),
    Action(
        name="wallet.cash_in",
        endpoint="POST /api/v1/agents/cashin",
        title="Cash in",
        description="The agent takes cash and pays from the float. The agent types the PIN.",
        button="Cash in",
        fields=(
            _SUBSCRIBER,
            Field("agent_id", "Agent", hint="agt_…"),
            _AMOUNT,
            Field("agent_pin", "The agent's PIN", "pin"),
        ),
        message_field="message",
        moves_money=True,
    ),
    Action(
        name="wallet.cash_out",
        endpoint="POST /api/v1/agents/cashout",
        title="Cash out",
        description="The agent hands out cash, and the wallet pays the agent. Both type their PIN.",
        button="Cash out",
        fields=(
            _SUBSCRIBER,
            Field("agent_id", "Agent", hint="agt_…"),
            _AMOUNT,
            Field("pin", "The subscriber's PIN", "pin"),
            Field("agent_pin", "The agent's PIN", "pin"),
        ),
        message_field="message",
        moves_money=True,
    ),
    Action(
        name="wallet.statement",
        endpoint="POST /api/v1/wallet/account-statement",
        title="Draw up a statement",
        description="A file with everything that moved in a time of up to a year.",
        button="Statement",
        fields=(
            _SUBSCRIBER,
            Field("from_date", "From", "date", hint=_DAY_HINT),
            Field("to_date", "To", "date", hint=_DAY_HINT),
            Field("format", "Form", "choice", (("pdf", "PDF, to print"), ("csv", "CSV"))),
        ),
        success_message="The statement is ready",
        result_template="subscribers/statement.html",
    ),
    Action(
        name="wallet.quote",
        endpoint="POST /api/v1/wallet/quote",
        title="What would it cost?",
        description="The fee, and whether the limits would allow it now. Nothing is moved.",
        button="Quote",
        fields=(
            Field("sender_id", "Sender", "hidden"),
            Field(
                "type",
                "Type",
                "choice",
                ("transfer_p2p", "pos_payment", "online_payment", "agent_cashout"),
            ),
            _AMOUNT,
        ),
        success_message="It would cost",
        result_template="subscribers/quote.html",
    ),
)
