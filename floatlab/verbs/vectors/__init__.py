"""`vectors`: conformance vectors in TestFloat's text format."""
