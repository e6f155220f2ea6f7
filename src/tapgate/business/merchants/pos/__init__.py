"""Card payments at terminals and in apps, with refunds, card verification and card lookup."""
