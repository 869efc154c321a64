"""Scripts that measure harrow: its speed, and what its campaigns find."""
