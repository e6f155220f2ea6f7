"""Portal pages, one file per subject."""
