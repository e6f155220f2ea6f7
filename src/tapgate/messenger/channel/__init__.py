"""Channel integration: delivery parser, message renderer and client for the provider's API.

The provider's API follows the WhatsApp Cloud API.
"""
