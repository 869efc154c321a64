"""Shared by control planes: interface, assignment, elections, the channel to the controller."""
