"""DynamoDB Local."""
