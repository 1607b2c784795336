"""AWS: `options` says how to reach it, `door` is the only place where boto3 is imported."""
