"""The statements of Delta: each is read to its end before anything happens."""
