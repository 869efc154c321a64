"""Shrinks failing runs, and keeps a corpus of them."""
