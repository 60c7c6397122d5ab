"""Finds the recipe that made given codes: tries recipes bit for bit, and tells those that agree apart."""
