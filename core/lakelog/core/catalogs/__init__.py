"""Tables that a catalog governs: which commit became which version is for the catalog to say."""
