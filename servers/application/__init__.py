"""The recorded site as a WSGI application, which any server that speaks uWSGI's protocol can stand in front of."""
