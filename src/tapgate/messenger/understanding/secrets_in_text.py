import re


def may_hold_a_pin(text: str) -> bool:
    return re.fullmatch(r"\W*\d{4}\W*(\d{4}\W*)?", text) is not None or "pin" in text.lower()
