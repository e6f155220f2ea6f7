"""What goes out to people: kept until the channel's provider has taken it, in order per person."""
