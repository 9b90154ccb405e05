"""S3 endpoints whose conditional put can't be trusted: s3rver and S3Proxy."""
