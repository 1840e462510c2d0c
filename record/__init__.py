"""From a recording of any kind to a recorded site: importers, demo sites, the site's format on disk."""
