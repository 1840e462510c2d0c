"""Films of loads: each is decoded once, for its start, its visual changes over time, and a strip of pictures.

A run's folder keeps (`dataset.run_files`)

strip.jpg         pictures of the film side by side, from the navigation to the last change
last.png          the last picture, a pixel for each block of 8 by 8 (`films.frames.blocks`)
film.mp4          the film without loss, each picture with its time in µs
film-small.mp4    or instead of it a lossy one (`films.policy`)

`film.changes`, the log that the recorder writes (`films.log`), becomes one of these films, or goes.
"""
