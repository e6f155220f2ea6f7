"""The words that all parts of the messenger share: what comes in, what goes out, what is asked of
the gateway in between. No I/O.

A channel's delivery is read into `Received`; the conversation engine takes an `Event` and answers
with `Reply`s and at most one `Call`; what becomes of the call is the next event.
"""
