"""Structure of pain.001.001.09, as far as bank files use it.

The schema of ISO 20022 is not part of the project. These tables have, for every element that may
appear, the order of its children, how often they occur, and the pattern of its text, written from
the published message definition.
"""

import re
from collections.abc import Mapping
from typing import Final
from xml.etree.ElementTree import Element

NAMESPACE: Final = "{urn:iso:std:iso:20022:tech:xsd:pain.001.001.09}"

_TEXT_35: Final = r".{1,35}"
_AMOUNT: Final = r"[0-9]{1,18}(\.[0-9]{1,5})?"
#: Element -> its children in order: `?` is optional, `+` occurs at least once, `|` is a choice.
_CHILDREN: Final[Mapping[str, str]] = {
    "Document": "CstmrCdtTrfInitn",
    "CstmrCdtTrfInitn": "GrpHdr PmtInf+",
    "GrpHdr": "MsgId CreDtTm NbOfTxs CtrlSum? InitgPty",
    "InitgPty": "Nm?",
    "PmtInf": "PmtInfId PmtMtd BtchBookg? NbOfTxs? CtrlSum? PmtTpInf? ReqdExctnDt Dbtr DbtrAcct"
    " DbtrAgt ChrgBr? CdtTrfTxInf+",
    "ReqdExctnDt": "Dt|DtTm",
    "Dbtr": "Nm?",
    "DbtrAcct": "Id Tp? Ccy? Nm?",
    "DbtrAgt": "FinInstnId",
    "CdtTrfTxInf": "PmtId PmtTpInf? Amt ChrgBr? CdtrAgt? Cdtr? CdtrAcct? Purp? RmtInf?",
    "PmtId": "InstrId? EndToEndId UETR?",
    "Amt": "InstdAmt|EqvtAmt",
    "CdtrAgt": "FinInstnId",
    "FinInstnId": "BICFI? ClrSysMmbId? LEI? Nm?",
    "ClrSysMmbId": "ClrSysId? MmbId",
    "Cdtr": "Nm?",
    "CdtrAcct": "Id Tp? Ccy? Nm?",
    "Othr": "Id SchmeNm? Issr?",
    "RmtInf": "Ustrd+",
}
#: An account's `Id` is a choice, and another account's number in it is a text.
_ACCOUNT_ID: Final = "IBAN|Othr"
_TEXTS: Final[Mapping[str, str]] = {
    "MsgId": _TEXT_35,
    "CreDtTm": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?",
    "NbOfTxs": r"[0-9]{1,15}",
    "CtrlSum": _AMOUNT,
    "Nm": r".{1,140}",
    "PmtInfId": _TEXT_35,
    "PmtMtd": "TRF|CHK|TRA",
    "Dt": r"\d{4}-\d\d-\d\d",
    "Ccy": "[A-Z]{3}",
    "InstrId": _TEXT_35,
    "EndToEndId": _TEXT_35,
    "InstdAmt": _AMOUNT,
    "BICFI": "[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?",
    "MmbId": _TEXT_35,
    "IBAN": "[A-Z]{2}[0-9]{2}[a-zA-Z0-9]{1,30}",
    "Id": r".{1,34}",
    "Ustrd": r".{1,140}",
}


def require_structure(element: Element, parent: str = "") -> None:
    """Require that an element and everything in it has the message's structure."""
    name = element.tag.removeprefix(NAMESPACE)
    children = [child.tag.removeprefix(NAMESPACE) for child in element]
    expected = _ACCOUNT_ID if name == "Id" and parent != "Othr" else _CHILDREN.get(name)
    if expected is None:
        assert not children, name
        assert re.fullmatch(_TEXTS[name], element.text or ""), (name, element.text)
        assert set(element.attrib) == ({"Ccy"} if name == "InstdAmt" else set()), name
        return
    pattern = "".join(_translate(part) for part in expected.split())
    assert re.fullmatch(pattern, "".join(f"{child} " for child in children)), (name, children)
    assert not (element.text or "").strip(), name
    for child in element:
        require_structure(child, name)


def _translate(part: str) -> str:
    """Return the pattern of child names that a part of the declaration allows."""
    mark = part[-1] if part[-1] in "?+" else ""
    return f"(?:(?:{part.rstrip('?+')}) ){mark}"
