"""Derives the history of clients from their requests and responses."""
