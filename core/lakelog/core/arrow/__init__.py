"""Converting Delta types and values to Arrow and back.

Knows the vocabulary of the log (`schema`, `actions`) and nothing of tables, files or stores.
"""
