"""What differs between two states of a record, as the audit log keeps it."""

import msgspec

from tapgate.audit.trail import Changes

#: Always differs, and says nothing that the entry's own time does not.
_IGNORED_FIELDS = frozenset({"updated_at"})


def diff_records(before: msgspec.Struct, after: msgspec.Struct) -> Changes:
    """Both are records as clients see them, so that the log speaks the clients' language."""
    return {
        field: (old, new)
        for field in before.__struct_fields__
        if field not in _IGNORED_FIELDS
        and (old := getattr(before, field)) != (new := getattr(after, field))
    }
