"""Class tags follow the records: what each object should have by now, and the change of what has another."""
