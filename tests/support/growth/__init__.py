"""Whether the cost of lakelog's operations stays in proportion to the table.

`worlds` makes tables that are large in one way, `operations` does on them whatever users can do,
`measuring` says how the cost grew. `tests/growth/test_costs.py` runs all of it by counting lines of
Python, `benchmarks/growth.py` by the CPU's time.
"""
