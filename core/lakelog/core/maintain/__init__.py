"""Looking after tables: optimize, vacuum, repair, restore."""
