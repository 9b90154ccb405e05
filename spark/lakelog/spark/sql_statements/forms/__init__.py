"""Forms that a statement may have: with values in it, or with its words in another order."""
