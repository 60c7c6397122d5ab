"""`compare --inputs`: whether two products differ by more than rounding, and why."""
