"""Subscribers, their KYC documents and their cards."""
