"""Payouts to bank accounts, payout runs with their bank files, and payout schedules."""
