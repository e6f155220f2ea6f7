"""What a process of either service is made of: serving, reading and answering, logs, other work."""
