"""Masking of personal names for display to other people."""


def mask_name(name: str) -> str:
    """Shorten a name: `Fatu Binta Kamara` becomes `Fatu K.`."""
    first, *others = name.split()
    return f"{first} {others[-1][0]}." if others else first
