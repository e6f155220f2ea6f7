"""What people write where something is asked for, read from their own text only.

In doubt nothing was read: the question is asked again.
"""

from tapgate.messenger.understanding.reading.amounts import amount
from tapgate.messenger.understanding.reading.names import number, person_names
from tapgate.messenger.understanding.reading.orders import (
    Order,
    Payee,
    has_odd_amount,
    order,
    payee_name,
    recipient,
)
from tapgate.messenger.understanding.reading.periods import period
from tapgate.messenger.understanding.reading.whom import card_serial, phone

__all__ = [
    "Order",
    "Payee",
    "amount",
    "card_serial",
    "has_odd_amount",
    "number",
    "order",
    "payee_name",
    "period",
    "person_names",
    "phone",
    "recipient",
]
