"""Shows the assessment of a cluster."""
