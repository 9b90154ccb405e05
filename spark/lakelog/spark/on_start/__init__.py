"""Sessions that a program makes itself are enabled: what `lakelog run` puts before others' code."""
