"""What control planes share: their interface, assignment, elections, and the way to the controller."""
