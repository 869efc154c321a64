"""Models the transaction coordinator with its ids and markers (KIP-98, KIP-890)."""
