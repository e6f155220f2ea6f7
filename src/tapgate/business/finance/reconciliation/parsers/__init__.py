"""Parsers for bank statement files, one per format. No I/O."""
