"""Webhooks: publishing events, endpoints, subscriptions and deliveries."""
