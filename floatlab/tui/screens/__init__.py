"""The screens, one folder per topic, and their shared base classes."""
