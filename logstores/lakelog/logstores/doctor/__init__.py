"""Probes of a store: is it there, is its clock right, does it exclude writers, may we write.

Each probe returns a `Finding` with its remedy. The command `lakelog doctor` shows them.
"""
