"""The state of a table at a version: replay of its log, snapshots, checksums, time travel."""
