"""One file per API, named as in ``wire/messages``. Every API with a file here is served."""
