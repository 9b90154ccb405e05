"""Values of expressions on Arrow rows, computed as Spark does it without Spark.

What can't be computed exactly as Spark does is refused, and left to Spark.
"""
