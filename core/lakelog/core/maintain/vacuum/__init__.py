"""VACUUM: deleting the files that no version within the retention needs."""
