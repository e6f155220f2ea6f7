"""Points of sale: payments, refunds and card look-ups by terminals and apps."""
