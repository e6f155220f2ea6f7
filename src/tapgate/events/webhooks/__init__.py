"""Outgoing webhooks: endpoints, subscriptions and deliveries."""
