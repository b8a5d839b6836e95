"""What pictures show, as frozen values. Pure: no I/O, no clock, no HTML."""
