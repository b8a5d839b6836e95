"""What can be typed. Commands declare their arguments and call ``emberlake.cli.actions``."""
