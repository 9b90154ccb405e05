"""What a change of schema, properties or protocol has to satisfy.

Pure rules on metadata and on the state that it will govern. Nothing here writes.
"""
