"""The protocol of REST catalogs: its paths, values and errors, for clients and servers.

Frozen values and pure codecs. ``emberlake.io.rest`` sends requests; the server answers them.
"""
