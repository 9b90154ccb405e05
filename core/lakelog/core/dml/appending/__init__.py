"""Rows that come one by one: taken by threads, committed together, each exactly once.

`appender` is the door, `intake` holds what waits, `committing` brings it into the table, and
`dead_letters` keeps what the table refuses.
"""
