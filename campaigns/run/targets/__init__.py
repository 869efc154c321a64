"""What a target is, what all targets share, and the model."""
