"""Spark SQL with Delta's statements: recognised and taken apart here, run by lakelog."""
