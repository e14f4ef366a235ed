"""The server of a champion's predictions."""
