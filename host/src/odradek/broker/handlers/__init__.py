"""One file per API, named as in ``wire/messages``. A file that is here is served."""
