"""Filters on Arrow data: ours as expressions and masks of pyarrow, and pyarrow's as ours."""
