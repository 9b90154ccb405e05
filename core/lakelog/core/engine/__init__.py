"""The one door for engines: what Spark, the program, or an engine of your own may ask of the core.

| an engine wants to | it asks |
|---|---|
| open, make or alter a table | `lakelog.core` (`DeltaLog`, `create_table`), `tables` |
| read rows | `scan`, `conditions` |
| write rows | `write`, `rows` |
| delete, update or merge rows | `dml`, `merge` |
| commit, and say what was done | `commit` |
| follow a table | `streams` |
| replay a large log on many machines | `log` |
| show what it does in metrics and traces | `telemetry` |
| run maintenance | `lakelog.core` (`optimize`, `vacuum`), `maintenance` |
| speak of columns and values | `lakelog.core.schema`, `schemas`, `values` |
| show people what is there | `shown` |

The import contracts hold that `lakelog.spark` and `lakelog.cli` see of the core what these modules
show, its public modules, and nothing else. What is behind the door may be moved and renamed. Before
a name is added here: does an engine ask for it, or for something that it is a step of?

A name is imported from its home where it is used, so that a module costs what is used of it.
"""
