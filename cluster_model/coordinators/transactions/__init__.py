"""The coordinator of transactions (KIP-98, KIP-890): what it knows of transactional ids, and how it ends their transactions."""
