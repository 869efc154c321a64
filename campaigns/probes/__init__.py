"""Rare states: which there are, what they need, and how often a run reached them."""
