"""Has the code of both control planes: interface, assignment, elections, channel to controllers."""
