"""What people see on a terminal: tables."""
