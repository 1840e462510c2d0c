"""One recording format a file; each turns a path into the exchanges that `record.site` stores."""
