"""The tables and views that statements name, and the queries that read them."""
