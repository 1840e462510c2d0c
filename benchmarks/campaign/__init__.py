"""What a run costs beyond the page's own load, and where it goes; beside stock Browsertime."""
