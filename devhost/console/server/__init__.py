"""The web server of the console: who may ask, what is answered, where it listens.

In: a `Console`. Out: a server on 127.0.0.1 that only the holder of its token can use.
"""
