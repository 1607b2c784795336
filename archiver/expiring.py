"""What has expired in a folder is removed: there no rule of a bucket does it."""
