"""What a client is, the kinds of clients, and those of the model."""
