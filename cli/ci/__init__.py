"""Results for CI systems, as JUnit files and GitHub annotations."""
