"""Makes cluster files from other descriptions of a cluster."""
