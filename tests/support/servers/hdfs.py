"""HDFS: a real NameNode and DataNode in one JVM."""
