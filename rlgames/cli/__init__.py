"""The command line: commands, help, completion, tables, the live view."""
