"""What an S3 server really does: each thing asked alone, each answer kept as it came, nothing judged."""
