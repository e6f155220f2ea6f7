"""Severity levels, in ascending order."""

from typing import Annotated, Final

from tapgate.schemas.fields import Choice

SEVERITIES: Final = ("LOW", "MEDIUM", "HIGH", "CRITICAL")

Severity = Annotated[str, Choice(*SEVERITIES, name="Severity")]
