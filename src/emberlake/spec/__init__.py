"""The values that tables keep on disk, and their pure codecs. No I/O, no clock."""
