"""The web server of the console: on 127.0.0.1, for the holder of its token alone."""
