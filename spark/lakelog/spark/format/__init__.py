"""Access by PySpark's own API: the Python Data Source, `enable` and `register`."""
