"""The command line: commands, help, tables, the live view."""
