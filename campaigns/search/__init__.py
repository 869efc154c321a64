"""Looking for failures, and making them small: shrink, strategies, corpus."""
