"""`lakelog describe`: what a table is, in one screen."""
