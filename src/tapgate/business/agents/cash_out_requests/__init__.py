"""Cash-out requests: an agent asks in the chat, and the customer confirms with the PIN."""
