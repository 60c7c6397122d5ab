"""The screens, a folder a topic, and what they share."""
