"""Sends single requests to the model and to a real server, and compares the answers."""
