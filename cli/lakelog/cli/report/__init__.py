"""`lakelog report`: a table as one HTML page."""
