"""Models consumer groups with both protocols: their members, assignments and committed offsets."""
