"""The recorded site as a WSGI application, for any server that speaks uWSGI's protocol."""
