"""Replaying a large log on Spark's executors instead of in the driver."""
