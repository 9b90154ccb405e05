"""Making tables: from a schema, from Parquet files, from another table."""
