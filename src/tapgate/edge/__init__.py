"""From HTTP to a handler and back: declared endpoints and all that follows from them."""
