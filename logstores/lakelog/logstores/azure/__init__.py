"""A log on Azure Blob Storage or Data Lake Storage Gen2."""

from lakelog.logstores.azure.store import AzureConditionalLogStore, AzureLeaseLogStore

__all__ = ["AzureConditionalLogStore", "AzureLeaseLogStore"]
