"""A Spark session as lakelog sees it: classic or Connect, its confs, its jobs' errors."""
