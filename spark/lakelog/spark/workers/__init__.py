"""What Spark's Python workers need: lakelog itself, and errors that survive the trip."""
