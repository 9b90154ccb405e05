"""`lakelog ui`: tables in the browser, served to this host alone."""
