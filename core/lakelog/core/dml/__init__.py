"""Changes of rows without an engine: write, delete, update, merge."""
