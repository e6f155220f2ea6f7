"""Recalls: a sender asks for a transfer to the wrong person back."""
