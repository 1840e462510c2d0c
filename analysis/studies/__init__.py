"""What the studies of `measure.studies` found, each as a section of a report."""
