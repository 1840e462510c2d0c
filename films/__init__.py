"""Films of loads: each is decoded once, for its start, its visual changes over time, and a strip of pictures.

These files stay in a run's folder (`dataset.run_files`):

strip.jpg         pictures of the film side by side, from the navigation to the last change
last.png          the last picture, with one pixel for each block of 8 by 8 (`films.frames.blocks`)
film.mp4          the film, compressed without loss; the times of its pictures are exact to the µs
film-small.mp4    instead of it, if so chosen: the film, compressed with loss (`films.policy`)

`films.kept` reads these films for reports.

The recorder writes `film.changes`, a log (`films.log`). It is replaced by one of the two films, or removed.
"""
