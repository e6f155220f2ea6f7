"""Differences between two states of a record, as stored in the audit log."""

import msgspec

from tapgate.audit.trail import Changes

#: `updated_at` always differs, and the audit entry has its own timestamp.
_IGNORED_FIELDS = frozenset({"updated_at"})


def diff_records(before: msgspec.Struct, after: msgspec.Struct) -> Changes:
    """Return the fields that differ, with their old and new values.

    Both arguments are public records, so the log uses the field names and formats of the API.
    """
    return {
        field: (old, new)
        for field in before.__struct_fields__
        if field not in _IGNORED_FIELDS
        and (old := getattr(before, field)) != (new := getattr(after, field))
    }
