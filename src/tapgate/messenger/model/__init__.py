"""Data model shared by all parts of the messenger. No I/O.

A channel's delivery is parsed into `ReceivedMessage` objects. The conversation engine takes an
`Event` and returns replies and at most one `GatewayRequest`, whose outcome is the next event.
"""
