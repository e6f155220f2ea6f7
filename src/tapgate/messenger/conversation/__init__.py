"""The conversation engine: pure, table-driven. State and event in; state, replies, one call out."""
