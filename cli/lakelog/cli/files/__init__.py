"""`lakelog files`: the data files of a version."""
