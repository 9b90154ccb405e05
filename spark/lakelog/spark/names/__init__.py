"""Tables by their names in Spark's session catalog: which are Delta tables, and where they are.

`parse` and `path_in` read names; `find`, `resolve` and `with_location` look them up; `claimed` and
`place_for` make new ones; `forget` is for other code that changes the catalog.
"""
