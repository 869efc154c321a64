"""Models the transaction coordinator, its transactional ids and its markers (KIP-98, KIP-890)."""
