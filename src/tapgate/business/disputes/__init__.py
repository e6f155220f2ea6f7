"""Disputes: cardholders contest card payments, merchants answer, compliance decides."""
