"""A stand-in for the channel's provider, over real HTTP, for development and tests.

It knows the provider's rules from the provider's documentation, not from our renderer: what we send
is judged by somebody else. Its users live under `/_fake`:

    POST /_fake/users/{phone}/say            {"text"} or {"tap"}, {"button"}, {"image"}, {"flow"},
                                             {"message"}; {"copies", "hold"} -> {"message_id"}
    POST /_fake/users/{phone}/change-number  {"to"}
    POST /_fake/users/{phone}/leave          they cannot be reached any more
    POST /_fake/deliver                      {"order": "sent" or "reversed", "together"}: what
                                             was held
    POST /_fake/media                        a file's bytes -> {"id"}
    POST /_fake/fail                         {"code", "status", "times"}: the next messages
    GET  /_fake/sent?to=                     what was taken, oldest first
"""
