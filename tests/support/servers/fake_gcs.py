"""fake-gcs-server: Google Cloud Storage."""
