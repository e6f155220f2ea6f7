"""PIN changes and resets, for every PIN holder."""
