"""`lakelog doctor`: is this storage safe for a log, and is it set up right."""
