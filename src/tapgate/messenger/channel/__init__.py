"""The channel: what its provider delivers is read here, what goes out to it is shaped here.

The provider's API has the shape of the WhatsApp Cloud API.
"""
