"""Rare states: which there are, how often a run reached them, which a campaign requires."""
