"""A run is kept without end, and is not any more: hold and release."""
