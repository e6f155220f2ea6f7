"""Fake messaging provider, served over real HTTP, for development and tests.

Its rules come from the provider's documentation, not from the messenger's renderer, so it validates
outgoing messages independently. The paths under `/_fake` control the fake and its users:

    POST /_fake/users/{phone}/say            {"text"} or {"tap"}, {"button"}, {"image"}, {"flow"},
                                             {"message"}; {"copies", "hold"} -> {"message_id"}
    POST /_fake/users/{phone}/change-number  {"to"}
    POST /_fake/users/{phone}/leave          makes the user unreachable
    POST /_fake/deliver                      {"order": "sent" or "reversed", "together"}: delivers
                                             the messages held back
    POST /_fake/reports                      {"field", "value"}: delivers a report about a template,
                                             the account or the phone number
    POST /_fake/media                        the bytes of a file -> {"id"}
    POST /_fake/fail                         {"code", "status", "times"}: fails the next messages
    GET  /_fake/sent?to=                     accepted messages, oldest first
    GET  /_fake/sms?to=                      accepted SMS, oldest first
    POST /_fake/sms/fail                     {"status", "delay_seconds", "accepts", "times"}: fails
                                             or delays the next requests at /sms
    POST /_fake/sms/{id}/report              {"status"}: reports an SMS as delivered or failed
"""
