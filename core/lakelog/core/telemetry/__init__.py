"""Metrics and spans of what is done to tables, for OpenTelemetry.

`catalogue` names them all, `switch` says whether they are made, `otel` makes them, and
`own_providers` sets the SDK up where the user has not. Nothing here is worth a commit: what fails
is logged, once, by `losses`, and nothing is raised. Where they are not made, the packages of
OpenTelemetry are not imported.
"""
