"""`DeltaTable` and its builders, under the names that delta-spark's users know."""
