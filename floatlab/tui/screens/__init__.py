"""The screens, in a folder for each topic, and their shared base classes."""
