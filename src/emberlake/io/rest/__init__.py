"""The client side of REST catalogs: requests to a server, and what they are sent with.

urllib3 (the extra ``rest``) is loaded with the first request.
"""
