"""A recorded run, told: timelines, diffs, one record's way."""
