"""Processes that race, are killed, or watch, for the checks that need them."""
