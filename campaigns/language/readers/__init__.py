"""Each section of a campaign file: what has to fit together in it, and the part of a plan it becomes."""
