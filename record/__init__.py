"""Recorded sites: the recorder, importers of other formats, demo sites, and the format of a site on disk."""
