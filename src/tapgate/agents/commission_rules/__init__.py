"""Commission rules: what agents earn on cash-in and cash-out."""
