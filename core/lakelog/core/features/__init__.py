"""The protocol, table features and table properties: what a table asks of its clients.

Source: PROTOCOL.md, "Table Features" and the sections on the features themselves.
"""
