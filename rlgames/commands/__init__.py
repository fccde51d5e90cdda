"""What each command does, as functions; cli.py calls them and display.py shows the results."""
