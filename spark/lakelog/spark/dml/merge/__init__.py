"""MERGE by Spark: from its clauses to its commit."""
