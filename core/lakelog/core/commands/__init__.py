"""What users call by name: write, delete, update, alter, create and convert.

The top of core. Each command opens a transaction, and leaves how a commit is made to it.
"""
