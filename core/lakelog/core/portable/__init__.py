"""What travels to executors by value, where lakelog is not installed.

Modules here import the standard library, pyarrow and each other, nothing else: cloudpickle sends
their source along with a job. A contract of `import-linter` holds that.
"""
