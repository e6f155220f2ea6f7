"""Approvals: rules, held requests, decisions and execution."""
