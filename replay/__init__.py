"""A recorded site behind an emulated network, in namespaces of its own."""
