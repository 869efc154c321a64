"""The interface of clients, the kinds of clients, and the clients of the model."""
