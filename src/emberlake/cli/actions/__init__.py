"""What commands do. Actions work on tables and return reports; nothing is printed here."""
