"""An agent as one HTML file: its rules, its policy and its search, compiled for a browser."""
