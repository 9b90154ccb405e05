"""Reading a table into a DataFrame: by Spark's Parquet reader, or by Arrow."""
