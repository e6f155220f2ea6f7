"""Public IDs: a prefix that names the record type, and a 64-bit number in base 32."""

SUBSCRIBER = "sub_"
TRANSACTION = "txn_"
ACCOUNT = "acc_"
AGENT = "agt_"
PROCESSOR = "prc_"
TERMINAL = "ter_"
PARTNER = "ptn_"
ALERT = "alr_"
RULE = "rul_"
ADMIN = "adm_"
PASSKEY = "pky_"
KEY = "key_"
STATEMENT = "stm_"
DOCUMENT = "doc_"
WEBHOOK_ENDPOINT = "whk_"
AUDIT_ENTRY = "aud_"
DELIVERY = "dlv_"
MESSAGE = "msg_"
FLOAT_REQUEST = "frq_"
CASH_OUT_REQUEST = "cor_"
SUPPORT_REQUEST = "req_"
SAVED_REPLY = "rpl_"
CARD_KEYSET = "cks_"
APPROVAL = "apr_"
SESSION = "ses_"
REQUEST_LOG = "log_"
CHAT_TURN = "cht_"
DISPUTE = "dsp_"
RECALL = "rcl_"
BANK_ACCOUNT = "bnk_"
PAYOUT = "po_"
PAYOUT_RUN = "run_"
BANK_STATEMENT = "bst_"
BANK_STATEMENT_LINE = "bsl_"
BATCH = "bat_"

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_VALUES = {letter: value for value, letter in enumerate(_ALPHABET)}
_ENCODED_LENGTH = 13


def encode(prefix: str, number: int) -> str:
    pair = _PAIRS
    return (
        f"{prefix}{_ALPHABET[number >> 60]}"
        f"{pair[number >> 50 & 1023]}{pair[number >> 40 & 1023]}{pair[number >> 30 & 1023]}"
        f"{pair[number >> 20 & 1023]}{pair[number >> 10 & 1023]}{pair[number & 1023]}"
    )


def get_prefix(public_id: str) -> str:
    """Return the prefix of a public ID: most have four characters, payout IDs three."""
    return public_id[: public_id.find("_") + 1]


def is_id(text: str) -> bool:
    """Return whether a text is a public ID, with any prefix."""
    prefix = get_prefix(text)
    return bool(prefix) and decode(prefix, text) is not None


def decode(prefix: str, text: str) -> int | None:
    """Return the internal ID for a public ID, or None if it is not valid with this prefix."""
    if not text.startswith(prefix) or len(text) != len(prefix) + _ENCODED_LENGTH:
        return None
    number = 0
    for letter in text[len(prefix) :]:
        value = _VALUES.get(letter)
        if value is None:
            return None
        number = number * 32 + value
    return number if number < 1 << 63 else None
