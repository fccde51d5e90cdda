"""What people see on a terminal, and what they type there."""
