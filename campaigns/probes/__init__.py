"""Rare states that a run may reach: their conditions, and how often each run reached them."""
