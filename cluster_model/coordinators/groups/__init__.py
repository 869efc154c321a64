"""Consumer groups: their members, assignments and committed offsets, in both protocols."""
