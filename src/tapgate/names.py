"""As much of a person's name as others may see."""


def mask_name(name: str) -> str:
    """`Fatu Binta Kamara` -> `Fatu K.`"""
    first, *others = name.split()
    return f"{first} {others[-1][0]}." if others else first
