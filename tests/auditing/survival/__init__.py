"""Tests of audits of recipes."""
