"""`schemaTrackingLocation`: the columns that a stream has, kept beside its checkpoint."""
