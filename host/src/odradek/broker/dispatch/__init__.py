"""From a request to its handler: authentication, quotas, routing."""
