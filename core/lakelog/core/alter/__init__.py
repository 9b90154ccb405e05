"""Changes that touch no row: columns, constraints, properties, clustering, features."""
