"""Point of sale: payments, refunds and card lookups for terminals and apps."""
