"""What each job does; one module per command, called as the command."""
