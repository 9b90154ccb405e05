"""Checks of stores that speak HTTP, through a proxy that injects faults."""
