"""Page that a phone opens when it reads a card that signs its taps."""
