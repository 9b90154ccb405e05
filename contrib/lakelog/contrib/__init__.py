"""LogStores for other storages, built on the contract and conformance kit of `lakelog.logstores`.

Nothing in lakelog imports from here: a store of this package is chosen by a conf that names its
class, like any third-party store, or by its scheme: fsspec, Alibaba OSS, IBM COS, Oracle OCI.
"""
