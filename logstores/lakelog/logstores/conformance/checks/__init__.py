"""The checks of the conformance kit, one file a promise."""
