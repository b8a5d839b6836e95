"""The client side of REST catalogs: requests to a server, and the credentials they carry.

urllib3 (the extra ``rest``) is loaded with the first request.
"""
