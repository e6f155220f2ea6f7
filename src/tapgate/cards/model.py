def read_identifier(text: str) -> tuple[str, str | None]:
    return text, text
