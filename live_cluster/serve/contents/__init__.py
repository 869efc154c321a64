"""Reads what clients write, and keeps the bytes: batches, subscriptions, timestamps."""
