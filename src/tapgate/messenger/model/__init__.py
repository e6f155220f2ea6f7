"""Data model shared by all parts of the messenger. No I/O.

A delivery is parsed into `ReceivedMessage` and `DeliveryStatus` objects. The conversation engine
takes an `Event` and returns the updated person and conversation, replies and at most one
`GatewayRequest`, whose outcome is the next event.
"""
