"""The APIs: a request goes in, a response comes out."""
