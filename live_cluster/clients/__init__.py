"""Clients under test: libraries that applications use, each in a process of its own."""
