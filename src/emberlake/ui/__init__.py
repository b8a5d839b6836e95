"""Pictures of tables, for people: ``emberlake ui`` and ``emberlake report``.

views      what a picture shows, as frozen values; pure functions compute them
loading    reads a table and makes its views
charts     draws shapes as SVG
pages      renders templates to HTML
app        serves the pages; guard decides who gets in, and serving runs it
report     the same pictures in one file

Starlette, Jinja and uvicorn are an extra (``pip install '.[ui]'``); nothing loads them before they
are needed. A page asks no other host for anything: style, script and icon are in ``assets``.
"""
