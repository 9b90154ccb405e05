"""Finding what is broken in a table, and mending what can be mended without a guess."""
