"""Rules for rows on their way into a table: defaults, generated values, constraints."""
