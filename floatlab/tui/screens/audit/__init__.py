"""The screen for audits: what recipes would do to checkpoints, and whether quantised weights are right."""
