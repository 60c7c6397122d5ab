"""`train underflow`: what becomes of gradients in a format, and the loss scale that keeps them."""
