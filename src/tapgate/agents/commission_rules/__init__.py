"""Commission rules: what agents earn on cash-ins and cash-outs."""
