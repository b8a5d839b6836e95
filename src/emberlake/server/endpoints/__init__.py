"""What is done for each request: one module for each kind of thing."""
