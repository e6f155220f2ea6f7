"""Archive: old months leave the database for sealed files, and remain provable."""
