"""Finance reports as JSON, CSV and PDF."""
