"""Models consumer groups with both protocols: members, assignments, committed offsets."""
