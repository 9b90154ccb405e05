"""Values of Spark SQL expressions, computed on Arrow rows without Spark.

What can't be computed exactly as Spark does is refused, and left to Spark.
"""
