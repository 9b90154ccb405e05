"""Rows, schemas and types in any form that callers have, converted to ours."""
