"""Effective settings as staff may see them: without secrets."""

from tapgate.core.settings import Settings
from tapgate_client.schemas.nodes import SettingRecord


def describe_settings(settings: Settings) -> list[SettingRecord]:
    """Return the settings by name."""
    records = []
    for name, item in sorted(settings.declared.items()):
        value = getattr(settings, name)
        is_set = value is not None and value not in ("", (), {})
        variables = {variable.variable for variable in item.list_variables()}
        records.append(
            SettingRecord(
                name=item.variable,
                value=None if item.is_secret or not is_set else item.value_type.format(value),
                hidden=item.is_secret,
                is_set=is_set,
                is_default=variables.isdisjoint(settings.variables),
            )
        )
    return records
