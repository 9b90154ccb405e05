"""LogStores kept by others, each on the contract and the conformance kit of `lakelog.logstores`.

Nothing in lakelog imports from here: a store of this package is chosen by a conf that names its
class, as any store from outside is, or by its scheme: fsspec, Alibaba OSS, IBM COS, Oracle OCI.
"""
