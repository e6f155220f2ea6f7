"""Compliance: the limits of each KYC level, and what is watched."""
