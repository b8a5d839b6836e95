"""What can be typed. Commands declare arguments and hand over to ``emberlake.cli.actions``."""
