"""Real servers for the tests: found in the environment, on the PATH, or installed into a cache.

One module a server; each has `install()`, a context manager that runs one, and a fixture that
gives an endpoint for the session. `make programs` installs them all.
"""
