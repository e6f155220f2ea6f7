"""Channel integration: parses the provider's deliveries and renders outgoing messages.

The provider's API follows the WhatsApp Cloud API.
"""
