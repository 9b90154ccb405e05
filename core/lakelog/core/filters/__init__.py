"""Conditions in any form that callers use, parsed into trees and evaluated as Arrow masks.

SQL text, tuples and expressions of pyarrow all become the tree of `expressions`.
"""
