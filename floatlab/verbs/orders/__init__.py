"""The same terms added in one order after another."""
