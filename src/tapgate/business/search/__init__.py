"""Search over all kinds of records, as the caller may see them."""
