"""SQL text to trees; the parser and all that is known of its grammar are in here."""
