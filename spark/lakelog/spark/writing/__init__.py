"""Writing a DataFrame: options, checks of rows, and three ways to make the files."""
