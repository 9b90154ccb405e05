"""DROP FEATURE: a table goes back to what older clients can use."""

__all__: list[str] = []
