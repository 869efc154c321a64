"""Results for CI systems: JUnit, GitHub."""
