"""A REST catalog server: ``emberlake serve``.

database    what the server remembers: names, ids, current schemas, latest snapshots, grants
access      who is asking, and what they may do
endpoints   what is done for each request, with the engine of filesystem catalogs
app         HTTP: routes, limits, errors, metrics

The files of a table are the truth about its snapshots, tags and history; the database follows them.
"""
